import { get } from "node:https";
import { notFound } from "@coxswain/apimachinery/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { ComponentStatus } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { SubresourceDefinition } from "../../generic/resource.ts";
import type { SubresourceCall } from "../../generic/subresource.ts";

/** Where the components of a single-host control plane answer. Source: pkg/registry/core/rest/storage_core.go */
const components: Readonly<Record<string, { port: number; path: string }>> = {
  "controller-manager": { port: 10257, path: "/healthz" },
  scheduler: { port: 10259, path: "/healthz" },
};

/** Never stored: each request asks the components. */
export const componentStatusSubresource: SubresourceDefinition = {
  kind: "ComponentStatus",
  verbs: ["get", "list"],
  handler: { type: "object", get: getOne, list: () => Promise.all(Object.keys(components).map(probe)) },
};

async function getOne(call: SubresourceCall): Promise<KubeObject> {
  if (!Object.hasOwn(components, call.name)) throw notFound({ group: "", resource: "componentstatuses" }, call.name);
  return probe(call.name);
}

const patienceMs = 2000;

function probe(name: string): Promise<ComponentStatus> {
  const { port, path } = components[name] as { port: number; path: string };
  return new Promise((resolve) => {
    const done = (status: "True" | "False", message: string, error: string): void =>
      resolve({
        kind: "ComponentStatus",
        apiVersion: "v1",
        metadata: { name },
        conditions: [{ type: "Healthy", status, ...(message ? { message } : {}), ...(error ? { error } : {}) }],
      });
    // A health answer carries no secret, and the components' certificates are self-signed.
    const request = get({ host: "127.0.0.1", port, path, rejectUnauthorized: false, timeout: patienceMs }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        if (body.length < 1024) body += chunk;
      });
      response.on("end", () => (response.statusCode === 200 ? done("True", body, "") : done("False", body, "")));
      response.on("error", (err) => done("False", "", err.message));
    });
    request.on("timeout", () => request.destroy(new Error("deadline exceeded")));
    request.on("error", (err) => done("False", `Get "https://127.0.0.1:${port}${path}": ${err.message}`, ""));
  });
}
