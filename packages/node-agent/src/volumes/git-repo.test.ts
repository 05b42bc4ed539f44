import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import type { GitRepoVolumeSource, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { noObjects } from "../sources/api-objects.ts";
import { aPodWithVolumes } from "../testing/builders.ts";
import type { Mounter } from "./mount.ts";
import { newVolumeManager } from "./volume-manager.ts";

const run = promisify(execFile);
const downward = { nodeName: "n", hostIps: [], podIps: [], allocatable: {} };
const mounter: Mounter = { mount: async () => undefined, unmount: async () => undefined, mountsBelow: async () => [] };

/** A repository `app` with a file in two states, served over HTTP. */
let dir = "";
let address = "";
let isAway = false;
const server = createServer((request, response) => {
  const path = new URL(request.url ?? "", "http://a").pathname;
  const content = isAway ? Promise.reject(new Error("away")) : readFile(join(dir, path));
  content.then(
    (bytes) => response.end(bytes),
    () => response.writeHead(404).end(),
  );
});

before(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), "cox-git-")));
  const work = join(dir, "work");
  const git = (...args: string[]) => run("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: work });
  await mkdir(work);
  await git("init", "-q", "-b", "main");
  for (const text of ["old", "new"]) {
    await writeFile(join(work, "file"), text);
    await git("add", "file");
    await git("commit", "-q", "-m", text);
    await git("tag", text);
  }
  await run("git", ["clone", "-q", "--bare", work, join(dir, "app.git")]);
  await run("git", ["update-server-info"], { cwd: join(dir, "app.git") });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(async () => {
  server.close();
  await rm(dir, { recursive: true, force: true });
});

let pods = 0;
/** Sets up the volume in a Pod of its own. `again` does so as another process. */
async function setUp(source: Partial<GitRepoVolumeSource>, spec: object = {}) {
  const volumes = [{ name: "code", gitRepo: { repository: `${address}/app.git`, ...source } }] as Volume[];
  const pod = aPodWithVolumes(volumes, spec, { uid: `pod-${pods++}` });
  const again = async () => {
    const manager = newVolumeManager({ podsDir: dir, objects: noObjects, mounter, clock: realClock, log: discardLogger });
    const { volumes: made, failures } = await manager.setUp(pod, downward);
    return { path: made.get("code")?.path ?? "", failure: failures[0]?.message };
  };
  return { ...(await again()), again, at: join(dir, pod.metadata.uid, "volumes/kubernetes.io~git-repo/code") };
}

for (const { name, source, file, text } of [
  { name: "in a folder with its name", source: {}, file: "app/file", text: "new" },
  { name: "in a folder that the pod names", source: { directory: "a/b" }, file: "a/b/file", text: "new" },
  { name: "in the volume itself", source: { directory: "." }, file: "file", text: "new" },
  { name: "in the volume itself, at a revision", source: { directory: "./", revision: "old" }, file: "file", text: "old" },
  { name: "at a revision", source: { revision: "old" }, file: "app/file", text: "old" },
  {
    name: "at a revision, in a folder that the pod names",
    source: { directory: "a", revision: "old" },
    file: "a/file",
    text: "old",
  },
]) {
  test(`a clone is made ${name}`, async () => {
    const { path, failure, at } = await setUp(source);
    assert.deepEqual([failure, path], [undefined, at]);
    assert.equal(await readFile(join(path, file), "utf8"), text);
  });
}

for (const { name, source, want } of [
  {
    name: "a repository that looks like an option",
    source: { repository: "-x" },
    want: /^"-x" is an invalid value for repository$/,
  },
  { name: "a revision that looks like an option", source: { revision: "-x" }, want: /^"-x" is an invalid value for revision$/ },
  { name: "a folder that looks like an option", source: { directory: "-x" }, want: /^"-x" is an invalid value for directory$/ },
  {
    name: "a checkout within a folder of the repository",
    source: { directory: "g/.git", revision: "old" },
    want: /^"g\/\.git" is not a valid directory, it must not contain a directory separator$/,
  },
  {
    name: "an unknown revision",
    source: { revision: "none" },
    want: /^failed to exec 'git checkout none': [\s\S]*exit status 1$/,
  },
  {
    name: "a folder of the host",
    source: { repository: "/etc" },
    want: /^failed to exec 'git clone -- \/etc': [\s\S]*exit status 128$/,
  },
  { name: "a program in place of a server", source: { repository: "ext::touch /x" }, want: /not allowed[\s\S]*exit status 128$/ },
]) {
  test(`${name} is refused`, async () => {
    const { failure = "" } = await setUp(source);
    assert.match(failure, want);
  });
}

test("a repository on the host's file system is not cloned, whatever its notation", async () => {
  for (const repository of [join(dir, "app.git"), `file://${join(dir, "app.git")}`]) {
    const { failure = "", at } = await setUp({ repository });
    assert.match(failure, /transport 'file' not allowed/);
    assert.deepEqual(await readdir(at), []);
  }
});

test("a failed clone is repeated; an existing one keeps containers' changes, also after a restart of the agent", async () => {
  isAway = true;
  const { failure = "", again, at } = await setUp({});
  assert.match(failure, /^failed to exec 'git clone -- http[\s\S]*exit status 128$/);
  isAway = false;
  await mkdir(join(at, "app"), { recursive: true });
  await writeFile(join(at, "app/half"), "left by a process that was killed");
  assert.equal((await again()).failure, undefined);
  assert.deepEqual(await readdir(join(at, "app")), [".git", "file"]);
  await writeFile(join(at, "app/file"), "changed");
  assert.equal((await again()).failure, undefined);
  assert.equal(await readFile(join(at, "app/file"), "utf8"), "changed");
  await access(join(at, "../../../plugins/kubernetes.io~git-repo/code/ready"));
});

test("files belong to the pod's group", async () => {
  for (const revision of ["old", ""]) {
    const { path } = await setUp({ revision }, { securityContext: { fsGroup: 4711 } });
    const { gid, mode } = await stat(join(path, "app/file"));
    assert.deepEqual([gid, mode & 0o660], [4711, revision === "" ? 0o640 : 0o660], "the group may write after a checkout");
  }
});

test("without git on the host a clone fails with the reason", async (t) => {
  const { PATH } = process.env;
  t.after(() => {
    process.env["PATH"] = PATH;
  });
  process.env["PATH"] = join(dir, "no-programs");
  const { failure } = await setUp({});
  assert.equal(failure, `failed to exec 'git clone -- ${address}/app.git': : spawn git ENOENT`);
});
