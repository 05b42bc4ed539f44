import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { tar } from "./tar.ts";

test("writes an archive that tar lists with types, modes and targets", () => {
  const archive = tar([
    { type: "folder", path: "bin" },
    { type: "file", path: "bin/tool", content: Buffer.from("x".repeat(600)), mode: 0o755 },
    { type: "symlink", path: "bin/alias", target: "tool" },
  ]);
  const listed = execFileSync("tar", ["-tvf", "-"], { input: archive, encoding: "utf8" });
  assert.match(listed, /^drwxr-xr-x .* bin\/$/m);
  assert.match(listed, /^-rwxr-xr-x .*\s600 .* bin\/tool$/m);
  assert.match(listed, /^lrwxrwxrwx .* bin\/alias -> tool$/m);
});

test("refuses a path that a header cannot hold", () => {
  assert.throws(() => tar([{ type: "folder", path: "a".repeat(101) }]), /too long/);
});
