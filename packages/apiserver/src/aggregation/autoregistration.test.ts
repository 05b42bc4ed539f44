import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { apiServices as apiServicesRef } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";
import { type ApiService, groupVersionOf } from "./api-services.ts";
import { newAutoregistration, nextStep } from "./autoregistration.ts";

const label = "kube-aggregator.kubernetes.io/automanaged";

function anApiService(managed?: "onstart" | "true", versionPriority = 15): ApiService {
  return {
    metadata: { name: "v1.a.b", ...(managed && { labels: { [label]: managed } }) },
    spec: { group: "a.b", version: "v1", groupPriorityMinimum: 1000, versionPriority },
  };
}

const [onStart, always, foreign] = [anApiService("onstart"), anApiService("true"), anApiService()];
const [otherOnStart, otherAlways] = [anApiService("onstart", 1), anApiService("true", 1)];

/** Rows and columns refer to the table in the comment of upstream's checkAPIService. */
for (const { name, wanted, current, wasThere = false, isDone = false, want } of [
  { name: "2A nothing is there and nothing wanted", want: "nothing" },
  { name: "2B what is wanted at start is made", wanted: onStart, want: "create" },
  { name: "2B, and made once", wanted: onStart, isDone: true, want: "nothing" },
  { name: "2C what is always wanted is made", wanted: always, want: "create" },
  { name: "2C again and again", wanted: always, isDone: true, want: "create" },
  { name: "3A what somebody made stays", current: foreign, wasThere: true, want: "nothing" },
  { name: "3B and stays as it is", current: foreign, wanted: otherOnStart, wasThere: true, want: "nothing" },
  { name: "3C whatever is wanted", current: foreign, wanted: otherAlways, wasThere: true, want: "nothing" },
  { name: "4A what another server made since the start is left to it", current: onStart, want: "nothing" },
  { name: "4B as it is", current: onStart, wanted: otherOnStart, want: "nothing" },
  { name: "4C whatever is wanted", current: onStart, wanted: otherAlways, want: "nothing" },
  { name: "5A what an earlier start left is deleted", current: onStart, wasThere: true, want: "delete" },
  { name: "5A once", current: onStart, wasThere: true, isDone: true, want: "nothing" },
  {
    name: "5B what an earlier start made is brought up to date",
    current: onStart,
    wanted: otherOnStart,
    wasThere: true,
    want: "update",
  },
  { name: "5B once", current: onStart, wanted: otherOnStart, wasThere: true, isDone: true, want: "nothing" },
  { name: "5C likewise", current: onStart, wanted: otherAlways, wasThere: true, want: "update" },
  { name: "6A what is no longer served is deleted", current: always, isDone: true, want: "delete" },
  { name: "6B is brought up to date", current: always, wanted: otherOnStart, want: "update" },
  { name: "6C is kept up to date", current: always, wanted: otherAlways, isDone: true, want: "update" },
  { name: "a correct APIService is not written", current: always, wanted: anApiService("true"), want: "nothing" },
]) {
  test(name, () => {
    assert.equal(nextStep({ wanted, current, wasThere, isDone }).type, want);
  });
}

test("an APIService that an earlier start left is deleted by its uid, so that one made again meanwhile stays", async (t) => {
  const client = newFakeClient();
  client.put(apiServicesRef, { ...anApiService("onstart"), metadata: { ...onStart.metadata, uid: "old" } });
  const clock = newFakeClock();
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const apiServices = informers.for<ApiService>(apiServicesRef);
  const registration = newAutoregistration({ client, apiServices, builtIn: [], clock, log: discardLogger });
  informers.start(stop.signal);
  void registration.run(Promise.resolve(), stop.signal);
  const { sent } = await waitFor(() => client.actions.find(({ verb }) => verb === "delete"), { what: "the deletion" });
  assert.partialDeepStrictEqual(sent, { preconditions: { uid: "old" } });
});

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined);
});
after(() => server.stop());

test("APIServices of custom resources are created, created again and deleted with their group versions", async (t) => {
  const stop = new AbortController();
  const informers = newInformerFactory(server.client, { log: discardLogger, clock: realClock });
  const apiServices = informers.for<ApiService>(apiServicesRef);
  const served = (await server.client.list<ApiService>(apiServicesRef)).items.map(groupVersionOf);
  const registration = newAutoregistration({
    client: server.client,
    apiServices,
    builtIn: served,
    clock: realClock,
    log: discardLogger,
  });
  informers.start(stop.signal);
  const running = registration.run(Promise.resolve(), stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
  });
  const path = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.custom.example.com";
  const found = () => server.request("GET", path);
  registration.add({ group: "custom.example.com", version: "v1beta1" });
  const { body } = await waitFor(async () => {
    const answer = await found();
    return answer.code === 200 && answer;
  });
  assert.equal(body.metadata.labels[label], "true");
  assert.deepEqual([body.spec.groupPriorityMinimum, body.spec.versionPriority], [1000, 100]);
  await server.request("DELETE", path);
  await waitFor(
    async () => {
      const { code, body: again } = await found();
      return code === 200 && again.metadata.uid !== body.metadata.uid;
    },
    { what: "it to come back" },
  );
  await waitFor(async () => (await server.request("GET", "/apis")).body.groups.at(-1).name === "custom.example.com", {
    what: "the group to be announced, after all others",
  });
  registration.remove({ group: "custom.example.com", version: "v1beta1" });
  await waitFor(async () => (await found()).code === 404, { what: "it to go" });
});
