import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cluster } from "@coxswain/testing";
import type { AdmissionregistrationV1, CoreV1 } from "@coxswain/testing/kinds";
import { mutatingWebhookConfigurations, secrets, validatingWebhookConfigurations } from "@coxswain/testing/resources";

const name = "pepr-example";
type Configuration = AdmissionregistrationV1.ValidatingWebhookConfiguration;

/** Applies the manifests of `pepr build`, runs the module as its pod would, and lets the cluster's webhooks reach it. */
export async function startModule(cluster: Cluster): Promise<{ stop(): Promise<void> }> {
  await cluster.apply(readFileSync("dist/pepr-module-example.yaml", "utf8"));
  await cluster.apply(storeDefinition);
  const valueOf = async (secret: string, key: string): Promise<string> => {
    const { data } = await cluster.client.get<CoreV1.Secret>(secrets, { namespace: "pepr-system", name: `${name}-${secret}` });
    return Buffer.from(String(data?.[key]), "base64").toString();
  };
  const port = await freePort();
  const scratch = mkdtempSync(join(tmpdir(), "pepr-"));
  const file = (path: string, text: string): string => {
    writeFileSync(join(scratch, path), text, { mode: 0o600 });
    return join(scratch, path);
  };
  const pepr = spawn(process.execPath, [`dist/${name}.cjs`], {
    stdio: ["ignore", 2, 2],
    env: {
      ...process.env,
      KUBECONFIG: file("kubeconfig", await cluster.kubeconfig()),
      LOG_LEVEL: "warn",
      PEPR_API_PATH: await valueOf("api-path", "value"),
      PEPR_PORT: String(port),
      SSL_CERT_PATH: file("tls.crt", await valueOf("tls", "tls.crt")),
      SSL_KEY_PATH: file("tls.key", await valueOf("tls", "tls.key")),
    },
  });
  const stop = async (): Promise<void> => {
    if (pepr.exitCode === null) {
      pepr.kill();
      await once(pepr, "exit");
    }
    rmSync(scratch, { recursive: true, force: true });
  };
  try {
    await connectWebhooks(cluster, port, () => pepr.exitCode);
  } catch (err) {
    await stop();
    throw err;
  }
  return { stop };
}

/** The module's webhooks name its Service; here they go to its process. */
async function connectWebhooks(cluster: Cluster, port: number, ended: () => number | null): Promise<void> {
  // Pepr's authority has no name. OpenSSL, unlike Go, takes what it signed for self-signed, thus nothing is verified on this way.
  const toModule = { host: "127.0.0.1", port, rejectUnauthorized: false, agent: false };
  const isReady = (): Promise<boolean> =>
    new Promise((resolve) => {
      const sent = request({ ...toModule, path: "/healthz" }, (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      });
      sent.on("error", () => resolve(false));
      sent.end();
    });
  // Pepr first makes its store in the cluster, after up to 3 s.
  await cluster.waitFor(
    () => {
      if (ended() !== null) throw new Error(`Pepr ended with exit code ${ended()}`);
      return isReady();
    },
    { within: "2m", what: "Pepr to be ready" },
  );

  const { url, caBundle } = await cluster.serve("pepr.test", (received, response) => {
    const { method, url: path, headers } = received;
    const sent = request({ ...toModule, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    sent.on("error", (err) => response.destroy(err));
    received.pipe(sent);
  });
  for (const configurations of [mutatingWebhookConfigurations, validatingWebhookConfigurations]) {
    const found = await cluster.client.get<Configuration>(configurations, { name });
    const redirected = found.webhooks?.map((hook) => ({
      ...hook,
      clientConfig: { url: `${url}${hook.clientConfig.service?.path}`, caBundle },
    }));
    await cluster.client.patch(configurations, { name }, { type: "merge", body: { webhooks: redirected } });
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** Pepr's image makes it when it starts. */
const storeDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "peprstores.pepr.dev" },
  spec: {
    group: "pepr.dev",
    scope: "Namespaced",
    names: { plural: "peprstores", singular: "peprstore", kind: "PeprStore" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: { data: { type: "object", additionalProperties: { type: "string" } } },
          },
        },
      },
    ],
  },
};
