import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { authorityHash } from "../cluster/authority-hash.ts";
import { newToken, secretOf } from "../cluster/tokens.ts";
import { tokenCommand } from "./token.ts";

const token = "abcdef.0123456789abcdef";
const path = "/api/v1/namespaces/kube-system/secrets";
const ca = await newCa({ commonName: "kubernetes" });

interface Answer {
  readonly status?: number;
  readonly body: object;
}

const failure = (code: number, reason: string): Answer => ({
  status: code,
  body: { apiVersion: "v1", kind: "Status", status: "Failure", code, reason, message: `${reason} it is` },
});

/** A server that answers each `<method> <path>`, its kubeconfig, and the requests that it got. */
async function aServer(t: TestContext, answers: Readonly<Record<string, Answer>>) {
  const folder = mkdtempSync(join(tmpdir(), "cox-token-"));
  const requests: { request: string; query: string; body: string }[] = [];
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const [place = "", query = ""] = (req.url ?? "").split("?");
    const request = `${req.method} ${place}`;
    requests.push({ request, query: decodeURIComponent(query), body: await text(req) });
    const { status = 200, body } = answers[request] ?? failure(404, "NotFound");
    res.writeHead(status, { "content-type": "application/json" });
    res.end(JSON.stringify(body));
  };
  const server = createServer((req, res) => void answer(req, res)).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = join(folder, "admin.conf");
  const named = (kind: string, value: object): object => ({ name: "x", [kind]: value });
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      clusters: [
        named("cluster", {
          server: `http://${host}`,
          "certificate-authority-data": Buffer.from(ca.certPem).toString("base64"),
        }),
      ],
      users: [named("user", {})],
      contexts: [named("context", { cluster: "x", user: "x" })],
      "current-context": "x",
    }),
  );
  return { kubeconfig, host, requests };
}

/** Runs the command. @returns the lines that it printed */
async function run(t: TestContext, ...words: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  const log = t.mock.method(console, "log", (line: string) => lines.push(line));
  await tokenCommand()
    .parseAsync([...words], { from: "user" })
    .finally(() => log.mock.restore());
  return lines;
}

const created: Readonly<Record<string, Answer>> = { [`POST ${path}`]: { status: 201, body: {} } };

test("a token is created as a Secret and printed; what is not said is kubeadm's", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.parse("2026-01-01T00:00:00Z") });
  const { kubeconfig, requests } = await aServer(t, created);
  const sent = (): unknown => JSON.parse(requests.at(-1)?.body ?? "");
  assert.deepEqual(await run(t, "create", token, "--kubeconfig", kubeconfig), [token]);
  const now = Date.now();
  assert.deepEqual(requests[0]?.request, `POST ${path}`);
  assert.deepEqual(sent(), secretOf(newToken({ token, ttlMs: 86_400_000, now })));
  const flags = ["--ttl", "0", "--description", "d", "--usages", "signing", "--groups", "system:bootstrappers:a"];
  await run(t, "create", token, "--kubeconfig", kubeconfig, ...flags);
  assert.deepEqual(
    sent(),
    secretOf(newToken({ token, ttlMs: 0, description: "d", usages: ["signing"], groups: ["system:bootstrappers:a"], now })),
  );
  const [made] = await run(t, "create", "--kubeconfig", kubeconfig);
  assert.match(made ?? "", /^[a-z0-9]{6}\.[a-z0-9]{16}$/);
  assert.notEqual(made, token);
});

test("the line for another machine has the server's address, the token and the hash of the authority", async (t) => {
  const { kubeconfig, host } = await aServer(t, created);
  const create = ["create", token, "--kubeconfig", kubeconfig, "--print-join-command"];
  const line = `coxswain join ${host} --token ${token} --discovery-token-ca-cert-hash ${authorityHash(ca.certPem)}`;
  assert.deepEqual(await run(t, ...create), [line]);
  const key = "0".repeat(64);
  assert.deepEqual(await run(t, ...create, "--certificate-key", key), [`${line} --control-plane --certificate-key ${key}`]);
  await assert.rejects(run(t, ...create, "--certificate-key", "00"), { exitCode: 2, message: /64 hexadecimal digits/ });
});

test("a dry run says what it would do, without a server", async (t) => {
  const dry = ["--dry-run", "--kubeconfig", "/none"];
  const would = (verb: string, id: string): string => `would ${verb} Secret kube-system/bootstrap-token-${id}`;
  assert.deepEqual(await run(t, "create", token, ...dry), [would("create", "abcdef")]);
  assert.deepEqual(await run(t, "delete", token, "aaaaaa", ...dry), [
    `${would("delete", "abcdef")}\n${would("delete", "aaaaaa")}`,
  ]);
  assert.match((await run(t, "generate"))[0] ?? "", /^[a-z0-9]{6}\.[a-z0-9]{16}$/);
});

test("the tokens among the Secrets are listed", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.parse("2026-01-01T00:00:00Z") });
  const now = Date.now();
  const other = { apiVersion: "v1", kind: "Secret", type: "Opaque", metadata: { name: "x", namespace: "kube-system" } };
  const items = [
    secretOf(newToken({ token, ttlMs: 86_400_000, description: "d", now })),
    other,
    secretOf(newToken({ token: "bbbbbb.0123456789abcdef", ttlMs: 0, usages: [], groups: [], now })),
  ];
  const { kubeconfig, requests } = await aServer(t, {
    [`GET ${path}`]: { body: { apiVersion: "v1", kind: "SecretList", metadata: {}, items } },
  });
  assert.deepEqual(
    (await run(t, "list", "--kubeconfig", kubeconfig)).map((line) => line.split(/ {3,}/)),
    [
      ["TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS"],
      [token, "24h", "2026-01-02T00:00:00Z", "signing,authentication", "d", "system:bootstrappers:kubeadm:default-node-token"],
      ["bbbbbb.0123456789abcdef", "<forever>", "<never>", "<none>", "<none>", "<none>"],
    ],
  );
  assert.match(requests[0]?.query ?? "", /fieldSelector=type=bootstrap\.kubernetes\.io\/token/);
});

test("tokens are deleted one after the other, up to one that is missing or refused", async (t) => {
  const at = (id: string): string => `DELETE ${path}/bootstrap-token-${id}`;
  const { kubeconfig, requests } = await aServer(t, {
    [at("abcdef")]: { body: { apiVersion: "v1", kind: "Status", status: "Success" } },
    [at("cccccc")]: failure(403, "Forbidden"),
  });
  const remove = (...ids: string[]): Promise<string[]> => run(t, "delete", ...ids, "--kubeconfig", kubeconfig);
  assert.deepEqual(await remove(token), ['bootstrap token "abcdef" deleted']);
  await assert.rejects(remove("abcdef", "bbbbbb", "abcdef"), { message: "there is no token bbbbbb", exitCode: 1 });
  await assert.rejects(remove("cccccc"), { message: /^cannot delete token cccccc: .*Forbidden it is/, exitCode: 1 });
  await assert.rejects(remove("abcdef", "wrong"), { exitCode: 2 });
  assert.deepEqual(
    requests.map(({ request }) => request),
    ["abcdef", "abcdef", "bbbbbb", "cccccc"].map(at),
    "nothing is deleted where one of the words is wrong",
  );
});

test("a token that cannot be created is told", async (t) => {
  const { kubeconfig } = await aServer(t, { [`POST ${path}`]: failure(409, "AlreadyExists") });
  await assert.rejects(run(t, "create", token, "--kubeconfig", kubeconfig), {
    message: /^cannot create the token: .*AlreadyExists it is/,
    exitCode: 1,
  });
});
