import { existsSync, readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { newCriClient } from "@coxswain/node-agent/runtime/cri-client";
import { containerdSocket } from "./containerd.ts";
import { pkiFile } from "./pki.ts";
import { runningPid } from "./processes.ts";
import { servicePartsOf } from "./service-parts.ts";
import type { Settings } from "./settings.ts";

const probeMs = 3_000;

/**
 * Checks the readiness of a process.
 * @param name one of `processNames`
 * @returns undefined when it is ready, else the reason on one line
 */
export async function notReadyReason(settings: Settings, name: string): Promise<string | undefined> {
  if (runningPid(settings, name) === undefined) return "it does not run";
  try {
    return await probes[name]?.(settings);
  } catch (err) {
    return messageOf(err) || String(err);
  }
}

const probes: Readonly<Record<string, (settings: Settings) => Promise<string | undefined>>> = {
  async etcd(settings) {
    const file = (name: string): Buffer => readFileSync(pkiFile(settings, `etcd/${name}`));
    const { status, body } = await get(`https://127.0.0.1:${settings.ports.etcd}/health`, {
      ca: file("ca.crt"),
      cert: file("healthcheck-client.crt"),
      key: file("healthcheck-client.key"),
    });
    // /health performs a linearizable read: it fails without quorum.
    return status === 200 && (JSON.parse(body) as { health?: string }).health === "true" ? undefined : `/health: ${body.trim()}`; // cast: etcd's /health
  },
  containerd: containerdProblem,
  "kube-apiserver": (settings) => healthOf(`https://127.0.0.1:${settings.ports.apiserver}/readyz`, ca(settings)),
  "kube-controller-manager": (settings) => healthOf(`https://127.0.0.1:${settings.ports.controllerManager}/healthz`, selfSigned),
  "kube-scheduler": (settings) => healthOf(`https://127.0.0.1:${settings.ports.scheduler}/healthz`, selfSigned),
  kubelet: (settings) => healthOf(`http://127.0.0.1:${settings.ports.kubeletHealthz}/healthz`, {}),
  async "coxswain-services"(settings) {
    const pages = servicePartsOf(settings).map((part) =>
      healthOf(`https://127.0.0.1:${settings.ports.services}/healthz/${part}`, selfSigned),
    );
    return (await Promise.all(pages)).find((reason) => reason !== undefined);
  },
};

/** @returns undefined when containerd responds to the CRI Version call, else the reason. */
async function containerdProblem(settings: Settings): Promise<string | undefined> {
  if (!existsSync(containerdSocket(settings))) return "there is no socket yet"; // avoids the gRPC client's backoff
  const runtime = newCriClient({ endpoint: `unix://${containerdSocket(settings)}`, requestTimeoutMs: probeMs });
  try {
    await runtime.version();
    return undefined;
  } finally {
    runtime.close();
  }
}

const ca = (settings: Settings): RequestOptions => ({ ca: readFileSync(pkiFile(settings, "ca.crt")) });
/** The daemons generate a self-signed certificate at each start; the request contains no credentials. */
const selfSigned: RequestOptions = { rejectUnauthorized: false };

async function healthOf(url: string, options: RequestOptions): Promise<string | undefined> {
  const { status, body } = await get(url, options);
  return status === 200 ? undefined : `${new URL(url).pathname} answers ${status}: ${failedChecks(body)}`;
}

/** The failed checks that a health page names (`[-]etcd failed: reason withheld`), else its last line. */
export function failedChecks(page: string): string {
  const names = [...page.matchAll(/^\[-\](\S+) failed/gm)].map(([, name]) => name);
  return names.length > 0 ? `${names.join(", ")} failed` : (page.trim().split("\n").at(-1) ?? "");
}

function get(url: string, options: RequestOptions): Promise<{ status: number; body: string }> {
  const send = url.startsWith("https:") ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(probeMs);
    const outgoing = send(url, { ...options, agent: false, signal }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        body += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      response.on("error", reject);
    });
    outgoing.on("error", (err) => reject(signal.aborted ? new Error(`no answer within ${probeMs / 1000} s`) : err));
    outgoing.end();
  });
}
