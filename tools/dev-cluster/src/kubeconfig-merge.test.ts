import assert from "node:assert/strict";
import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { parse } from "yaml";
import { type Kubeconfig, merged, mergeInto, newKubeconfig, targetFile } from "./kubeconfig-merge.ts";

const admin: Kubeconfig = {
  apiVersion: "v1",
  kind: "Config",
  clusters: [{ name: "kubernetes", cluster: { server: "https://127.0.0.1:6443", "certificate-authority-data": "Y2E=" } }],
  users: [{ name: "kubernetes-admin", user: { "client-certificate-data": "YQ==" } }],
  contexts: [{ name: "kubernetes-admin@kubernetes", context: { cluster: "kubernetes", user: "kubernetes-admin" } }],
  "current-context": "kubernetes-admin@kubernetes",
};
const ours = newKubeconfig(admin, "cox-b", "/clone/.cox/clusters/b");

const theirs = `# mine
apiVersion: v1
kind: Config
clusters:
- name: work
  cluster: {server: "https://work.example.com"} # do not touch
contexts:
- name: work
  context: {cluster: work, user: work}
users:
- name: work
  user: {token: secret}
current-context: work
preferences: {}
`;

test("cluster, user and context have one name", () => {
  assert.equal(ours["current-context"], "cox-b");
  assert.deepEqual(ours.contexts, [{ name: "cox-b", context: { cluster: "cox-b", user: "cox-b" } }]);
});

test("the user's entries, comments and current context are kept", () => {
  const text = merged(theirs, ours, "config");
  const config = parse(text);
  assert.match(text, /^# mine\n/);
  assert.match(text, /# do not touch/);
  assert.equal(config["current-context"], "work");
  assert.deepEqual(
    config.clusters.map((cluster: { name: string }) => cluster.name),
    ["work", "cox-b"],
  );
  assert.deepEqual(config.users[0], { name: "work", user: { token: "secret" } });
  assert.deepEqual(config.clusters[1], ours.clusters[0]);
});

test("an empty kubeconfig gets the cluster's context as the current one", () => {
  for (const text of ["", "# nothing yet\n", "apiVersion: v1\nkind: Config\nclusters: null\ncurrent-context: ''\n"])
    assert.equal(parse(merged(text, ours, "config"))["current-context"], "cox-b");
});

test("the cluster's entries are replaced, not duplicated, also for a recreated cluster", () => {
  const newer = newKubeconfig(
    { ...admin, users: [{ name: "kubernetes-admin", user: { token: "new" } }] },
    "cox-b",
    "/clone/.cox/clusters/b",
  );
  const config = parse(merged(merged(theirs, ours, "config"), newer, "config"));
  assert.deepEqual(
    config.users.map((user: { name: string }) => user.name),
    ["work", "cox-b"],
  );
  assert.deepEqual(config.users[1], newer.users[0]);
});

for (const { name, text } of [
  { name: "of another clone", text: merged("", newKubeconfig(admin, "cox-b", "/another/.cox/clusters/b"), "config") },
  { name: "that has a context of this name", text: theirs.replaceAll("name: work", "name: cox-b") },
  { name: "whose user has this name", text: theirs.replace("- name: work\n  user", "- name: cox-b\n  user") },
]) {
  test(`an entry ${name} is not overwritten`, () =>
    assert.throws(
      () => merged(text, ours, "config"),
      /^Error: config has .* named cox-b that this cluster did not put there; choose another with --context/,
    ));
}

test("a file that is not a kubeconfig is not changed", () => {
  assert.throws(() => merged("a: [", ours, "config"), /config is not valid YAML/);
  assert.throws(() => merged("- a\n", ours, "config"), /config is not a kubeconfig/);
  assert.throws(() => merged("clusters: {}\n", ours, "config"), /config is not a kubeconfig: clusters is not a list/);
});

function newFile(t: TestContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "kubeconfig-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "config");
  writeFileSync(file, text, { mode: 0o644 });
  return file;
}

test("a backup of the file is kept, a link stays a link, and a second merge changes nothing", (t) => {
  const file = newFile(t, theirs);
  const link = `${file}-link`;
  symlinkSync(file, link);
  const { backup, changed } = mergeInto(link, ours);
  assert.equal(changed, true);
  assert.equal(readFileSync(backup ?? "", "utf8"), theirs);
  assert.equal(readFileSync(link, "utf8"), readFileSync(file, "utf8"));
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(mergeInto(link, ours), { backup: undefined, changed: false });
});

test("$KUBECONFIG's first file counts, then the home folder", () => {
  assert.equal(targetFile({ KUBECONFIG: ":/a:/b", HOME: "/home/u" }), "/a");
  assert.equal(targetFile({ HOME: "/home/u" }), "/home/u/.kube/config");
});

test("a file keeps its owner, a new one is its folder's; the backup says when", (t) => {
  const file = newFile(t, theirs);
  const made = join(dirname(file), "sub", "config");
  mkdirSync(dirname(made));
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const path of [file, dirname(made)]) chownSync(path, 7, 8);
  const { backup } = mergeInto(file, ours, new Date("2026-01-02T03:04:05.678Z"));
  assert.equal(backup, `${file}.before-cox-20260102T030405Z`);
  assert.deepEqual(mergeInto(made, ours), { backup: undefined, changed: true });
  if (isRoot) for (const path of [file, made]) assert.deepEqual([statSync(path).uid, statSync(path).gid], [7, 8], path);
  assert.deepEqual(readdirSync(dirname(made)), ["config"]);
  const deep = join(dirname(file), "new", "folder", "config");
  mergeInto(deep, ours);
  assert.equal(statSync(dirname(deep)).mode & 0o777, 0o700);
});

test("without a home folder the user has to name the file", () => {
  assert.throws(() => targetFile({ HOME: "/nonexistent" }), {
    message: "HOME is not set; name the file to merge into with KUBECONFIG",
  });
});
