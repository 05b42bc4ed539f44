import assert from "node:assert/strict";
import { test } from "node:test";
import { deployments, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { serveDiscovery } from "../testing/discovery.ts";
import { newScaleClient } from "./scale-client.ts";

const never = new AbortController().signal;
const foreign = { ...deployments, group: "example.com", resource: "foreigndeployments" };

function world() {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  serveDiscovery(client, [foreign, { ...deployments, scale: true }, replicaSets]);
  const requests: string[] = [];
  let isAway = false;
  const raw = client.raw.bind(client);
  client.raw = async (method, path, options) => {
    requests.push(path);
    if (isAway) throw new Error("away");
    return raw(method, path, options);
  };
  const scales = newScaleClient(client, clock);
  const deployment = () => scales.resourceOf("apps/v1", "Deployment");
  const setAway = (away: boolean): void => {
    isAway = away;
  };
  return { clock, client, scales, deployment, requests, setAway };
}

test("a kind is found in its group, also when another group has one of the same name", async () => {
  const { scales, deployment } = world();
  assert.equal((await deployment()).resource, "deployments");
  assert.equal((await scales.resourceOf("example.com/v1", "Deployment")).resource, "foreigndeployments");
});

test("a kind that is not served is named with its version, or with its group when any version would do", async () => {
  const { scales } = world();
  const find = (scope?: "any version") => scales.resourceOf("apps/v1", "Widget", scope);
  await assert.rejects(find(), { message: 'no matches for kind "Widget" in version "apps/v1"' });
  await assert.rejects(find("any version"), { message: 'no matches for kind "Widget" in group "apps"' });
  await assert.rejects(scales.resourceOf("a/b/c", "Widget"), { message: "unexpected GroupVersion string: a/b/c" });
});

test("what is served is read once in 30 s, for all who ask", async () => {
  const { deployment, requests, clock } = world();
  await Promise.all([deployment(), deployment()]);
  const once = requests.length;
  await clock.advance(29_999);
  await deployment();
  assert.equal(requests.length, once);
  await clock.advance(1);
  await deployment();
  assert.equal(requests.length, 2 * once);
});

test("a discovery that failed is repeated by the next call", async () => {
  const { deployment, setAway } = world();
  setAway(true);
  await assert.rejects(deployment(), /away/);
  setAway(false);
  assert.equal((await deployment()).resource, "deployments");
});

test("only a resource with a scale subresource of its own has one", async () => {
  const { scales, client } = world();
  assert.equal(await scales.hasScale(deployments, never), true);
  assert.equal(await scales.hasScale(replicaSets, never), false);
  client.rawAnswers.set("/apis/apps/v1", { resources: [{ name: "replicasets/scale", kind: "Weight" }] });
  assert.equal(await scales.hasScale(replicaSets, never), false, "of another kind");
  client.rawAnswers.delete("/apis/apps/v1");
  await assert.rejects(scales.hasScale(deployments, never), {
    message: "cannot discover /apis/apps/v1: unexpected status 404",
  });
});

for (const { name, answer, want } of [
  { name: "that lists nothing", answer: { resources: null }, want: false },
  { name: "without a list", answer: {}, want: false },
  { name: "that is no object", answer: "x", want: false },
  { name: "with a scale of another kind", answer: { resources: [{ name: "deployments/scale", kind: "Other" }] }, want: false },
  { name: "with a scale of another resource", answer: { resources: [{ name: "x/scale", kind: "Scale" }] }, want: false },
  {
    name: "with the scale behind others",
    answer: { resources: [null, { name: "deployments" }, { name: "deployments/scale", kind: "Scale" }] },
    want: true,
  },
]) {
  test(`a group version ${name} ${want ? "serves" : "does not serve"} the scale`, async () => {
    const { client, scales } = world();
    client.rawAnswers.set("/apis/apps/v1", answer);
    assert.equal(await scales.hasScale(deployments, never), want);
  });
}

test("a discovery that is no list of resources is a failure", async () => {
  const { client, scales } = world();
  client.rawAnswers.set("/apis/apps/v1", { resources: "x" });
  await assert.rejects(scales.hasScale(deployments, never), {
    message: "cannot discover /apis/apps/v1: the response is not an APIResourceList",
  });
});
