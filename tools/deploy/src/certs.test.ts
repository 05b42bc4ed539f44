import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { nodeFlags } from "@coxswain/apimachinery/testing/node-flags";
import { giveToReaders } from "@coxswain/pki/readers";

const program = join(import.meta.dirname, "certs.ts");
const certs = (...args: string[]) => promisify(execFile)(process.execPath, [...nodeFlags, program, ...args]);

function aFolder(t: { after(fn: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-certs-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("certificates have the given names, and keep them when more are added", async (t) => {
  const folder = aFolder(t);
  const pki = (file: string): string => readFileSync(join(folder, "pki", file), "utf8");
  const { stdout } = await certs(
    `--folder=${folder}`,
    "--node-name=One",
    "--apiserver-names=10.96.0.1,api.test",
    "--outside-server=https://outside:6443",
    `--admin-copy=${folder}/copy.conf`,
  );
  assert.match(stdout, /^made \S+pki\/apiserver\.crt$/m);
  const kept = ["ca.crt", "ca.key", "sa.key", "etcd/ca.crt"].map(pki);
  const first = new X509Certificate(pki("apiserver.crt"));
  for (const name of ["api.test", "one", "kubernetes.default.svc"]) assert.equal(first.checkHost(name), name);
  assert.equal(first.checkIP("10.96.0.1"), "10.96.0.1");
  assert.ok(first.verify(new X509Certificate(pki("ca.crt")).publicKey));
  const server = (name: string): string =>
    JSON.parse(readFileSync(join(folder, `${name}.conf`), "utf8")).clusters[0].cluster.server;
  for (const name of ["admin", "kubelet", "services", "copy"]) assert.equal(server(name), "https://outside:6443", name);
  for (const name of ["scheduler", "controller-manager"]) assert.equal(server(name), "https://127.0.0.1:6443", name);

  await certs(`--folder=${folder}`, "--node-name=One", "--apiserver-names=other.test");
  const second = new X509Certificate(pki("apiserver.crt"));
  for (const name of ["api.test", "other.test"]) assert.equal(second.checkHost(name), name);
  assert.deepEqual(["ca.crt", "ca.key", "sa.key", "etcd/ca.crt"].map(pki), kept);
});

test("an authority without its key is an error of one line, with exit code 1", async (t) => {
  const folder = aFolder(t);
  await certs(`--folder=${folder}`);
  rmSync(join(folder, "pki", "ca.key"));
  rmSync(join(folder, "pki", "kubelet.crt"));
  await assert.rejects(certs(`--folder=${folder}`), {
    code: 1,
    stderr: /^error: \S+pki\/ca\.crt is there without its key .*pki\/kubelet\.crt.*\n$/,
  });
});

test("check and renew take the folder before and after their name", async (t) => {
  const folder = aFolder(t);
  await certs(`--folder=${folder}`);
  assert.match((await certs("check", `--folder=${folder}`)).stdout, /^etcd\/server /m);
  assert.match((await certs(`--folder=${folder}`, "renew", "apiserver")).stdout, /^renewed \S+apiserver\.crt\n$/);
  await assert.rejects(certs("chekc", `--folder=${folder}`), { code: 1, stderr: /chekc/ });
});

test("a key is readable by the group of the daemon that needs it, and by no other", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const folder = aFolder(t);
  await certs(`--folder=${folder}`);
  const groups = join(folder, "group");
  writeFileSync(groups, "root:x:0:\nkube-apiserver:x:4001:\nkube-service-accounts:x:4002:\n");
  giveToReaders(folder, groups);
  const access = (file: string) => {
    const { gid, mode } = statSync(join(folder, file));
    return [gid, (mode & 0o777).toString(8)];
  };
  assert.deepEqual(access("pki/apiserver.key"), [4001, "640"]);
  assert.deepEqual(access("pki/sa.key"), [4002, "640"]);
  assert.deepEqual(giveToReaders(folder, groups), [], "nothing is left to change");
  chownSync(join(folder, "pki/sa.key"), 4003, 4002); // the right group, but another owner
  chmodSync(join(folder, "pki/apiserver.key"), 0o644);
  const changed = ["apiserver.key is read by group kube-apiserver now", "sa.key is read by group kube-service-accounts now"];
  const lines = changed.map((line) => `${folder}/pki/${line}`);
  assert.deepEqual(giveToReaders(folder, groups, true), lines, "with --dry-run it is only told");
  assert.deepEqual([statSync(join(folder, "pki/sa.key")).uid, access("pki/apiserver.key")[1]], [4003, "644"]);
  assert.deepEqual(giveToReaders(folder, groups), lines);
  assert.deepEqual([statSync(join(folder, "pki/sa.key")).uid, access("pki/apiserver.key")[1]], [0, "640"]);
  for (const file of ["pki/ca.key", "admin.conf", "kubelet.conf", "pki/kubelet.key"])
    assert.deepEqual(access(file), [0, "600"], file);
});

test("without flags the machine's names count, and the first address of kubeadm's service range", async (t) => {
  const folder = aFolder(t);
  await certs(`--folder=${folder}`, "--etcd-names=e.test,,10.0.0.7", "--kubelet-names=k.test");
  const pki = (file: string): X509Certificate => new X509Certificate(readFileSync(join(folder, "pki", file)));
  const own = hostname().toLowerCase();
  assert.equal(pki("apiserver.crt").checkIP("10.96.0.1"), "10.96.0.1");
  for (const name of ["e.test", own]) assert.equal(pki("etcd/server.crt").checkHost(name), name);
  for (const file of ["etcd/server.crt", "etcd/peer.crt"]) {
    assert.equal(pki(file).checkIP("10.0.0.7"), "10.0.0.7", file);
    assert.doesNotMatch(pki(file).subjectAltName ?? "", /DNS:(?:,|$)/, file);
  }
  assert.equal(pki("kubelet.crt").checkHost("k.test"), "k.test");
  assert.equal(pki("kubelet.crt").subject, `O=system:nodes\nCN=system:node:${own}`);
  assert.equal(pki("apiserver-kubelet-client.crt").subject, "O=system:masters\nCN=kube-apiserver-kubelet-client");
  const copy = join(folder, "none", "copy.conf");
  await assert.rejects(certs(`--folder=${folder}`, `--admin-copy=${copy}`), {
    code: 1,
    stderr: new RegExp(`^error: cannot write ${copy}: ENOENT[^\\n]*\\n$`),
  });
});
