import assert from "node:assert/strict";
import { request } from "node:https";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import type { Endpoints, Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { apiServices, endpoints, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { PartContext } from "../part.ts";
import { kubeletConfig, startMetricsApi } from "./part.ts";

const config: ClientConfig = {
  ...{ host: "https://api.example:6443", caFile: "/ca.crt", certFile: "/own.crt", keyFile: "/own.key" },
  ...{ serverName: "api.example", proxyUrl: "http://proxy.example:3128", contentType: "application/vnd.kubernetes.protobuf" },
};
const url = "https://192.0.2.1:10250";
const flags = (authority = "", insecure = false) => ({
  "kubelet-certificate-authority": authority,
  "kubelet-insecure-tls": insecure,
});

test("a kubelet gets the process's own certificate, directly, and is verified under its own name by the cluster's authority", () => {
  const { userAgent, ...own } = kubeletConfig(config, url, flags());
  assert.match(String(userAgent), /^coxswain-services\/.*\/metrics-api$/);
  assert.deepEqual(own, { host: url, caFile: "/ca.crt", ca: undefined, certFile: "/own.crt", keyFile: "/own.key", qps: -1 });
});

test("another authority replaces the cluster's; without verification there is none", () => {
  const { caFile, ca, insecure } = kubeletConfig({ ...config, ca: "PEM" }, url, flags("/kubelets.crt"));
  assert.deepEqual([caFile, ca, insecure], ["/kubelets.crt", undefined, undefined]);
  const unverified = kubeletConfig({ ...config, ca: "PEM" }, url, flags("/kubelets.crt", true));
  assert.deepEqual([unverified.caFile, unverified.ca, unverified.insecure], [undefined, undefined, true]);
});

const aNode = (...addresses: { type: string; address: string }[]): Node => ({
  metadata: { name: "n1" },
  spec: {},
  status: { addresses },
});

/** Tokens name the group of their user; `none` is of nobody. */
async function context(t: TestContext) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  client.react("create", "tokenreviews", ({ sent }) => {
    const { spec } = sent as KubeObject & { spec: { token: string } };
    const user = { username: "jane", groups: [spec.token] };
    return { ...(sent as KubeObject), status: { authenticated: spec.token !== "none", user } };
  });
  client.react("create", "subjectaccessreviews", ({ sent }) => ({ ...(sent as KubeObject), status: { allowed: false } }));
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  const failures: unknown[] = [];
  const partContext = {
    ...{ client, informers, clock, log: discardLogger, nodeName: "n1", metrics: newMetricsRegistry(), signal: ending.signal },
    flags: {
      ...{ kubeconfig: "", master: "http://127.0.0.1:1", "metrics-api-port": 0, "client-ca-file": "" },
      ...{
        "authentication-tolerate-lookup-failure": false,
        "requestheader-client-ca-file": "",
        "requestheader-allowed-names": [],
      },
      ...{ "requestheader-username-headers": [], "requestheader-group-headers": [], "requestheader-extra-headers-prefix": [] },
      ...flags("", false),
    },
    fail: (err: unknown) => void failures.push(err),
  } as unknown as PartContext; // cast: a context with what this part takes
  informers.start(ending.signal);
  t.after(() => ending.abort());
  return { clock, client, ending, failures, partContext };
}

test("serves on the Node's internal address, registered with the authority of its certificate, until it ends", async (t) => {
  const { clock, client, ending, failures, partContext } = await context(t);
  await assert.rejects(startMetricsApi(partContext), { message: "the Node n1 has no address of type InternalIP yet" });
  client.put(nodes, aNode({ type: "ExternalIP", address: "192.0.2.1" }, { type: "InternalIP", address: "127.0.0.1" }));
  await settle();
  const part = await startMetricsApi(partContext);
  const stop = async (): Promise<void> => {
    ending.abort();
    await part.stop?.();
  };
  t.after(stop);
  const { subsets } = await waitFor(() => client.object<Endpoints>(endpoints, "kube-system/coxswain-metrics"));
  const port = subsets?.[0]?.ports?.[0]?.port as number;
  assert.deepEqual(subsets, [{ addresses: [{ ip: "127.0.0.1" }], ports: [{ name: "https", port, protocol: "TCP" }] }]);
  const service = await waitFor(() => client.object<APIService>(apiServices, "v1beta1.metrics.k8s.io"));
  const ca = Buffer.from(service.spec?.caBundle ?? "", "base64").toString();
  const ask = (servername: string, token: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` };
      const path = "/apis/metrics.k8s.io/v1beta1/nodes";
      const call = request({ host: "127.0.0.1", port, path, ca, servername, headers, agent: false }, (response) => {
        response.resume().on("end", () => resolve(response.statusCode));
      });
      call.once("error", reject).end();
    });
  const servername = "coxswain-metrics.kube-system.svc";
  const reviews = (): number => client.writes.filter(({ resource }) => resource === "subjectaccessreviews").length;
  assert.deepEqual([await ask(servername, "system:masters"), reviews()], [200, 0], "the privileged group needs no review");
  assert.deepEqual([await ask(servername, "system:nodes"), reviews()], [403, 1]);
  assert.equal(await ask(servername, "none"), 401);
  await assert.rejects(ask("other.kube-system.svc", "system:masters"), { code: "ERR_TLS_CERT_ALTNAME_INVALID" });
  await waitFor(async () => {
    await part.check?.();
    return true;
  });
  await clock.advance(60_000);
  await part.check?.();
  assert.deepEqual(failures, []);
  const silent = await listening(t, createServer());
  const node = aNode({ type: "InternalIP", address: "127.0.0.1" });
  client.put(nodes, { ...node, status: { ...node.status, daemonEndpoints: { kubeletEndpoint: { Port: silent } } } });
  await settle();
  await clock.advance(15_000); // a round that does not end
  await clock.advance(45_000);
  await part.check?.();
  await clock.advance(1);
  assert.throws(() => part.check?.(), { message: "no kubelet has been queried for a minute" });
  await stop();
  await assert.rejects(ask(servername, "system:masters"), { code: "ECONNREFUSED" });
});
