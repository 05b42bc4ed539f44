/** Secrets must not appear in etcd's files, the audit log, the log, or files readable by others. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { selfSignedPair } from "@coxswain/apimachinery/serving/self-signed";
import { startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { newLogBackend } from "../audit/log-backend.ts";
import { startTestServer } from "../testing/start-test-server.ts";

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-at-rest-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Whether one of the files contains the text, plain or in base64. */
function isInFiles(folder: string, text: string): boolean {
  const forms = [Buffer.from(text), Buffer.from(Buffer.from(text).toString("base64"))];
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.some(({ parentPath, name }) => {
    const content = readFileSync(join(parentPath, name));
    return forms.some((form) => content.includes(form));
  });
}

function dataFolderOf(pid: number): string {
  const flags = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  const at = flags.findIndex((flag) => flag.startsWith("--data-dir"));
  return flags[at]?.split("=")[1] ?? (flags[at + 1] as string);
}

const secrets = "/api/v1/namespaces/default/secrets";
const configMaps = "/api/v1/namespaces/default/configmaps";

test("etcd's files hold no secret in plain text, and a new key takes over with a rewrite of all secrets", async (t) => {
  const etcd = await startOwnEtcd(t);
  t.after(() => etcd.stop());
  const folder = newFolder(t);
  const config = join(folder, "encryption.json");
  const keys = ["one", "two"].map((name) => ({ name, secret: randomBytes(32).toString("base64") }));
  const start = async (...used: object[]) => {
    const encryption = {
      apiVersion: "apiserver.config.k8s.io/v1",
      kind: "EncryptionConfiguration",
      resources: [{ resources: ["secrets"], providers: [{ aesgcm: { keys: used } }] }],
    };
    writeFileSync(config, JSON.stringify(encryption), { mode: 0o600 });
    const flags = ["--etcd-prefix=/at-rest", `--etcd-servers=${etcd.endpoint}`, `--encryption-provider-config=${config}`];
    return startTestServer(t, flags);
  };
  const hidden = `hidden-${randomBytes(12).toString("hex")}`;
  const open = `open-${randomBytes(12).toString("hex")}`;

  const first = await start(keys[0] as object);
  for (const name of ["a", "b"]) {
    const { code } = await first.request("POST", secrets, { metadata: { name }, stringData: { p: hidden } });
    assert.equal(code, 201);
  }
  await first.request("POST", configMaps, { metadata: { name: "a" }, data: { p: open } });
  const data = dataFolderOf(etcd.pid);
  assert.ok(isInFiles(data, open), "what is not encrypted is found");
  assert.equal(isInFiles(data, hidden), false);
  await first.stop();

  const second = await start(keys[1] as object, keys[0] as object);
  const { body: list } = await second.request("GET", secrets);
  for (const secret of list.items) {
    const { code } = await second.request("PUT", `${secrets}/${secret.metadata.name}`, secret);
    assert.equal(code, 200);
  }
  await second.stop();

  const third = await start(keys[1] as object);
  for (const name of ["a", "b"]) {
    const { body } = await third.request("GET", `${secrets}/${name}`);
    assert.equal(Buffer.from(body.data.p, "base64").toString(), hidden);
  }
  assert.equal(isInFiles(data, hidden), false);
});

test("neither the audit at Metadata nor the log at its loudest shows a secret's content or anybody's token", async (t) => {
  const folder = newFolder(t);
  const policy = join(folder, "policy.yaml");
  writeFileSync(policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n");
  const audit = join(folder, "audit.log");
  const lines: string[] = [];
  const log = newLogger({ verbosity: 10, write: (line) => void lines.push(line) });
  const server = await startTestServer(t, [`--audit-policy-file=${policy}`, `--audit-log-path=${audit}`], log);
  const hidden = `hidden-${randomBytes(12).toString("hex")}`;
  const stranger = `stranger-${randomBytes(12).toString("hex")}`;

  await server.request("POST", secrets, { metadata: { name: "a" }, stringData: { p: hidden } });
  const merge = { "content-type": "application/merge-patch+json" };
  await server.request("PATCH", `${secrets}/a`, { stringData: { q: hidden } }, merge);
  await server.request("GET", secrets);
  await server.request("POST", secrets, { metadata: { name: "Not Valid" }, stringData: { p: hidden } });
  await server.request("POST", secrets, `{"stringData": {"p": "${hidden}" oops`);
  await server.request("DELETE", `${secrets}/a`);
  await server.request("GET", secrets, undefined, { authorization: `Bearer ${stranger}` });
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token: stranger } };
  await server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review);
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  await server.request("POST", accounts, { metadata: { name: "robot" } });
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 600 } };
  const { body: issued, code } = await server.request("POST", `${accounts}/robot/token`, request);
  assert.equal(code, 201);

  const events = readFileSync(audit, "utf8");
  assert.match(events, /"verb":"patch"/);
  assert.match(events, /Authentication failed, attempted: bearer/);
  assert.ok(lines.length > 10, "the log says something");
  const shown = events + lines.join("");
  const base64 = Buffer.from(hidden).toString("base64");
  for (const [what, text] of Object.entries({
    hidden,
    base64,
    stranger,
    admin: server.adminToken,
    issued: issued.status.token,
  })) {
    assert.equal(shown.includes(text), false, what);
  }
});

test("keys and audit logs are written for the server alone", async (t) => {
  const folder = newFolder(t);
  const before = process.umask(0);
  t.after(() => process.umask(before));
  const certDir = join(folder, "pairs");
  await selfSignedPair({ certDir, pairName: "apiserver", host: "x", dnsNames: ["localhost"], ips: [] });
  const path = join(folder, "audit", "audit.log");
  const options = {
    path,
    format: "json",
    version: "audit.k8s.io/v1",
    maxBytes: 0,
    maxAgeDays: 0,
    maxBackups: 0,
    compress: false,
  } as const;
  const log = newLogBackend(options, realClock, () => {});
  t.after(() => log.stop(AbortSignal.abort()));
  const modeOf = (...parts: string[]): string => (statSync(join(folder, ...parts)).mode & 0o777).toString(8);
  assert.equal(modeOf("pairs", "apiserver.key"), "600");
  assert.equal(modeOf("pairs", "apiserver.crt"), "644");
  assert.equal(modeOf("audit"), "700");
  assert.equal(modeOf("audit", "audit.log"), "600");
});
