/**
 * `stand-in.ts NAME FLAGS…`: in place of a daemon or etcd in tests of `up`: takes the daemon's flags, serves what `up` asks it, and
 * prints a line for each request with the time since boot in ms, so that tests see their order across processes.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { dirname, join } from "node:path";

const [name = "", ...args] = process.argv.slice(2);
const flags = new Map(args.map((arg) => [arg.slice(2).split("=", 1)[0], arg.slice(arg.indexOf("=") + 1)]));
const read = (flag: string): Buffer => readFileSync(flags.get(flag) ?? "");

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const named = (name: string, namespace = "default"): object => ({ metadata: { name, namespace } });
const readyNode = { ...named("n"), spec: {}, status: { conditions: [{ type: "Ready", status: "True" }] } };

let asked = 0;
function answer(method: string, path: string, body: string): Answer {
  // Not ready at first, as the real ones.
  if (path === "/health") return { status: 200, body: { health: String(++asked > 2) } };
  if (path === "/readyz" || path === "/healthz") return { status: 200, body: "ok" };
  if (method === "POST") return { status: 201, body: JSON.parse(body) };
  if (path.endsWith("/serviceaccounts/default")) {
    const missing = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "NotFound", code: 404, message: "none yet" };
    return ++asked > 1 ? { status: 200, body: named("default") } : { status: 404, body: missing };
  }
  if (path.endsWith("/configmaps/kube-root-ca.crt")) return { status: 200, body: named("kube-root-ca.crt") };
  if (path === "/api/v1/nodes") return { status: 200, body: { metadata: {}, items: [readyNode, readyNode] } };
  return { status: 404, body: {} };
}

const place =
  name === "etcd"
    ? { ca: read("trusted-ca-file"), cert: read("cert-file"), key: read("key-file"), requestCert: true, rejectUnauthorized: true }
    : flags.has("tls-cert-file")
      ? { cert: read("tls-cert-file"), key: read("tls-private-key-file") }
      : pairBeside(flags.get("kubeconfig") ?? "");
const port = name === "etcd" ? new URL(flags.get("listen-client-urls") ?? "").port : flags.get("secure-port");

/** The other daemons sign their own; which certificate it is does not matter to `up`. */
function pairBeside(kubeconfig: string): { cert: Buffer; key: Buffer } {
  const pki = join(dirname(kubeconfig), "pki");
  return { cert: readFileSync(join(pki, "apiserver.crt")), key: readFileSync(join(pki, "apiserver.key")) };
}

createServer(place, (request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
  request.on("end", () => {
    const [path = ""] = (request.url ?? "").split("?");
    const { status, body: answered } = answer(request.method ?? "", path, body);
    console.log(`${Math.floor(Number(process.hrtime.bigint()) / 1e6)} ${request.method} ${path} ${status}`);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof answered === "string" ? answered : JSON.stringify(answered));
  });
}).listen(Number(port), "127.0.0.1");
