import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { nodeLogins } from "./node-logins.ts";

test("the node's credentials are those of the first valid file: config.json before .dockercfg, the agent's folder first", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-logins-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const [rootDir, home] = [join(dir, "kubelet"), join(dir, "home")];
  await mkdir(rootDir);
  await mkdir(join(home, ".docker"), { recursive: true });
  const entries = (username: string) => ({ "registry.example": { username } });
  const users = async () => (await nodeLogins(rootDir, home)).map(({ auth }) => auth.username);
  assert.deepEqual(await users(), []);
  await writeFile(join(home, ".dockercfg"), JSON.stringify(entries("old home")));
  assert.deepEqual(await users(), ["old home"]);
  await writeFile(join(rootDir, ".dockercfg"), JSON.stringify(entries("old")));
  assert.deepEqual(await users(), ["old"]);
  await writeFile(join(home, ".docker/config.json"), JSON.stringify({ auths: entries("home") }));
  assert.deepEqual(await users(), ["home"]);
  await writeFile(join(rootDir, "config.json"), "{");
  assert.deepEqual(await users(), ["home"]);
  await writeFile(join(rootDir, "config.json"), JSON.stringify({ auths: entries("kubelet") }));
  assert.deepEqual(await users(), ["kubelet"]);
});
