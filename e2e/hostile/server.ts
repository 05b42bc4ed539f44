/** The API server under attack: a process with its own etcd and the flags of `./cox up`, measured from outside. */
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { daemonProcess, etcdProcess } from "@coxswain/dev-cluster/daemons";
import { pkiFile } from "@coxswain/dev-cluster/pki";
import { newManualCluster, type OwnProcess, type TestContext, untilReady } from "../framework/own-cluster.ts";
import type { Target } from "./attack.ts";
import { userNames } from "./case.ts";
import { connectInspector } from "./inspector.ts";
import type { Holdings } from "./limits.ts";

export interface AttackedServer {
  readonly target: Target;
  readonly etcdPid: number;
  readonly process: OwnProcess;
  /** Sends a request on a new connection. */
  client(token: string): Client;
  /** Measured after a forced garbage collection. */
  holdings(): Promise<Holdings>;
  /** CPU time of the longest iteration of its event loop since the last call, in ms. */
  longestTurnMs(): Promise<number>;
  readonly bystanderToken: string;
}

const groups: Readonly<Record<string, string>> = {
  admin: "system:masters",
  platform: "system:masters",
  node: "system:nodes",
};
const names: Readonly<Record<string, string>> = { node: "system:node:hostile" };

export async function startAttackedServer(t: TestContext): Promise<AttackedServer> {
  const cluster = await newManualCluster(t);
  const { settings } = cluster;
  const file = (name: string): string => join(settings.state, name);
  const tokens = Object.fromEntries(
    [...userNames, "admin", "bystander"].map((name) => [name, randomBytes(16).toString("hex")]),
  ) as Record<(typeof userNames)[number] | "admin" | "bystander", string>;
  const lines = Object.entries(tokens).map(
    ([name, token]) => `${token},${names[name] ?? name},${name},${groups[name] ?? "developers"}`,
  );
  writeFileSync(file("tokens.csv"), `${lines.join("\n")}\n`, { mode: 0o600 });
  writeFileSync(file("audit.yaml"), auditPolicy);
  const etcd = cluster.start(etcdProcess(settings));
  const spec = daemonProcess(settings, "kube-apiserver");
  const server = cluster.start({
    ...spec,
    // To force garbage collections, so that uncollected garbage is not counted as memory held by the server.
    env: { ...spec.env, NODE_OPTIONS: "--inspect=127.0.0.1:0" },
    args: [
      ...spec.args,
      `--token-auth-file=${file("tokens.csv")}`,
      `--audit-policy-file=${file("audit.yaml")}`,
      `--audit-log-path=${file("audit.log")}`,
      "--feature-gates=CustomResourceValidationExpressions=true",
    ],
  });
  await untilReady(settings, server, settings.ports.apiserver);
  const port = settings.ports.apiserver;
  const read = (name: string): string => readFileSync(pkiFile(settings, name), "utf8");
  const ca = read("ca.crt");
  const client = (token: string): Client => newClient({ host: `https://127.0.0.1:${port}`, ca, token, qps: -1 });
  const admin = client(tokens.admin);
  t.after(() => admin.close());
  const account = await prepare(admin);
  const { certPem, keyPem } = await newCertificate({
    commonName: "hostile",
    dnsNames: ["localhost"],
    ips: ["127.0.0.1"],
    usages: ["server"],
    ca: { certPem: ca, keyPem: read("ca.key") },
  });
  const inspector = await connectInspector(server.log());
  t.after(() => inspector.close());
  return {
    target: { port, ca, tokens: { ...tokens, account }, pair: { cert: certPem, key: keyPem } },
    bystanderToken: tokens.bystander,
    etcdPid: etcd.pid,
    process: server,
    client,
    async holdings() {
      const cachedBytes = await cachedBy(admin);
      const heldBytes = (await inspector.heldBytes()) - cachedBytes;
      const residentPages = Number(readFileSync(`/proc/${server.pid}/statm`, "latin1").split(" ")[1]);
      return {
        heldBytes,
        cachedBytes,
        residentBytes: residentPages * 4096,
        descriptors: readdirSync(`/proc/${server.pid}/fd`).length,
      };
    },
    longestTurnMs: inspector.longestTurnMs,
  };
}

/** Sum of the bytes in all caches that have a limit. */
async function cachedBy(admin: Client): Promise<number> {
  const { body } = await admin.raw("GET", "/metrics");
  const values = [...body.toString().matchAll(/^coxswain_apiserver_cache_bytes\{.*\} (\S+)$/gm)];
  if (values.length === 0) throw new Error("the server's metrics show no caches");
  return values.reduce((sum, [, bytes]) => sum + Number(bytes), 0);
}

/** @returns a token of the service account `attacked/robot` */
async function prepare(admin: Client): Promise<string> {
  const post = async (path: string, object: object): Promise<KubeObject> => {
    const { status, body } = await admin.raw("POST", path, {
      headers: { "content-type": "application/json" },
      body: JSON.stringify(object),
    });
    if (status >= 300) throw new Error(`POST ${path}: ${status} ${body}`);
    return JSON.parse(body.toString()) as KubeObject;
  };
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const apiGroup = "rbac.authorization.k8s.io";
  const user = (name: string): object => ({ kind: "User", apiGroup, name });
  const robot = { kind: "ServiceAccount", namespace: "attacked", name: "robot" };
  for (const name of ["attacked", "audited", "bystander"]) await post("/api/v1/namespaces", { metadata: { name } });
  await post(`${rbac}/namespaces/attacked/roles`, {
    metadata: { name: "few" },
    rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["*"] }],
  });
  const bind = (namespace: string, name: string, roleRef: object, ...subjects: object[]): Promise<KubeObject> =>
    post(`${rbac}/namespaces/${namespace}/rolebindings`, { metadata: { name }, roleRef: { apiGroup, ...roleRef }, subjects });
  // The aggregated ClusterRole `admin` is filled by a controller that does not run here.
  const own = async (namespace: string): Promise<void> => {
    const rules = [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }];
    await post(`${rbac}/namespaces/${namespace}/roles`, { metadata: { name: "owner" }, rules });
    await bind(namespace, "owner", { kind: "Role", name: "owner" }, user("owner"));
  };
  await bind("attacked", "few", { kind: "Role", name: "few" }, user("ordinary"), robot);
  await own("attacked");
  await own("audited");
  await post(`${rbac}/namespaces/bystander/roles`, {
    metadata: { name: "works" },
    rules: [{ apiGroups: ["", "coordination.k8s.io"], resources: ["configmaps", "leases"], verbs: ["*"] }],
  });
  await bind("bystander", "works", { kind: "Role", name: "works" }, user("bystander"));
  await post("/api/v1/namespaces/attacked/serviceaccounts", { metadata: { name: "robot" } });
  await post("/api/v1/namespaces/attacked/serviceaccounts", { metadata: { name: "default" } }); // no controller creates it here
  const review = await post("/api/v1/namespaces/attacked/serviceaccounts/robot/token", {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: {},
  });
  return (review as unknown as { status: { token: string } }).status.token;
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: RequestResponse
  namespaces: [audited]
- level: None
`;
