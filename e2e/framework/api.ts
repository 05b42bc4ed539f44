import { readFileSync } from "node:fs";
import { request } from "node:https";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { settings } from "./kubectl.ts";
import { lookedAt } from "./wait-for.ts";

interface Kubeconfig {
  clusters: [{ cluster: { "certificate-authority-data": string } }];
  users: [{ user: { "client-certificate-data": string; "client-key-data": string } }];
}

const config = JSON.parse(readFileSync(kubeconfigFile(settings, "admin"), "utf8")) as Kubeconfig;
const pem = (base64: string): Buffer => Buffer.from(base64, "base64");
const credentials = {
  ca: pem(config.clusters[0].cluster["certificate-authority-data"]),
  cert: pem(config.users[0].user["client-certificate-data"]),
  key: pem(config.users[0].user["client-key-data"]),
};

export interface Answer {
  code: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** Parsed body; undefined when it is not JSON. */
  body: { kind?: string; reason?: string; message?: string; code?: number; data?: Record<string, string> } | undefined;
}

/** Sends one HTTPS request to the API server as administrator, exactly as given, without encoding or added headers. */
export function send(
  method: string,
  path: string,
  body?: string | Buffer,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: "127.0.0.1",
        port: settings.ports.apiserver,
        method,
        path,
        headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
        ...credentials,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          lookedAt(`${method} ${path}: ${response.statusCode} ${text}`);
          resolve({ code: response.statusCode ?? 0, headers: response.headers, text, body: parse(text) });
        });
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

function parse(text: string): Answer["body"] {
  try {
    return JSON.parse(text) as Answer["body"];
  } catch {
    return undefined;
  }
}
