import { once } from "node:events";
import { connect } from "node:http2";
import { aWidget, define, widgets } from "@coxswain/apiserver/testing/custom-resources";
import type { TestServer } from "@coxswain/apiserver/testing/start-test-server";

export type Request = () => Promise<void>;

const group = "path.example.com";
const configMaps = "/api/v1/namespaces/default/configmaps";

/** Creates the objects that the requests need: an object to read, the Pods' service account, a custom resource. */
export async function prepare(server: TestServer): Promise<void> {
  await sent(server, "POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  await sent(server, "POST", configMaps, configMap("read"));
  await define(server, widgets(group, [{ name: "v1" }]));
}

/** The measured requests by name; each call sends one and waits for its answer. The first one is a create. */
export function requestsOf(server: TestServer): Record<string, Request> {
  let number = 0;
  const name = (): string => `made-${number++}`;
  return {
    "create a ConfigMap": () => sent(server, "POST", configMaps, configMap(name())),
    "get a ConfigMap": () => sent(server, "GET", `${configMaps}/read`),
    "list ConfigMaps": () => sent(server, "GET", configMaps),
    "patch a ConfigMap": () =>
      sent(server, "PATCH", `${configMaps}/read`, { data: { text: name() } }, "application/strategic-merge-patch+json"),
    "create a Pod": () => sent(server, "POST", "/api/v1/namespaces/default/pods", pod(name())),
    "create a custom object": () =>
      sent(server, "POST", `/apis/${group}/v1/namespaces/default/widgets`, aWidget(group, name(), { spec: { size: 1 } })),
  };
}

/** Opens a watch of ConfigMaps on a separate connection. */
export async function openWatch({ url, ca, adminToken }: TestServer): Promise<{ close(): void }> {
  const session = connect(url, { ca });
  session.on("error", () => {});
  const stream = session.request({ ":path": `${configMaps}?watch=true`, authorization: `Bearer ${adminToken}` });
  stream.on("error", () => {});
  stream.resume();
  await once(stream, "response");
  return { close: () => session.destroy() };
}

const configMap = (name: string): object => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { text: "x" } });

const pod = (name: string): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels: { app: "web" } },
  spec: { containers: [{ name: "web", image: "nginx:1.21", ports: [{ containerPort: 80 }] }] },
});

async function sent(server: TestServer, method: string, path: string, body?: object, type?: string): Promise<void> {
  const { code, text } = await server.request(method, path, body, type === undefined ? {} : { "content-type": type });
  if (code >= 300) throw new Error(`${method} ${path}: ${code} ${text}`);
}
