import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { settings } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";

test("Debian's Python client reads, writes, patches, watches and executes", async (t) => {
  const namespace = await newNamespace(t, "python");
  const script = join(import.meta.dirname, "python", "smoke.py");
  const args = [script, kubeconfigFile(settings, "admin"), namespace];
  const { stdout } = await promisify(execFile)("/usr/bin/python3", args, { timeout: 240_000 });
  assert.deepEqual(stdout.trim().split("\n"), [
    "version v1.23.0",
    "nodes 1",
    "event MODIFIED {'a': '1', 'b': '2'}",
    "event MODIFIED {'b': '2'}",
    "event DELETED {'b': '2'}",
    "error 422 Unprocessable Entity",
    "log started",
    "exec hello",
    "scale 1",
    "deleted shell",
    "pages ['one', 'three', 'two'] None",
    "groups True",
  ]);
});
