import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

/** Runs download.mjs with a shell script as command. @param onOutput may send signals to it */
function download(
  t: TestContext,
  script: string,
  patienceSeconds: number,
  onOutput: (kill: (signal: NodeJS.Signals) => void) => void = () => {},
): Promise<{ code: number | null; output: string; folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), "download-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(import.meta.dirname, "download.mjs");
  const args = [program, "kubectl 1.23 (some 30 MB)", "check the network", join(folder, "log"), "sh", "-c", script];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, COX_DOWNLOAD_PATIENCE: String(patienceSeconds) },
  });
  let output = "";
  child.stderr.on("data", (chunk) => {
    output += chunk;
    onOutput((signal) => child.kill(signal));
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, output, folder })));
}

test("says what it fetches, hides the program's output, and returns its success", async (t) => {
  const { code, output } = await download(t, "echo noise", 60);
  assert.deepEqual({ code, output }, { code: 0, output: "cox: fetching kubectl 1.23 (some 30 MB)\n" });
});

test("shows the end of a failed program's output, its exit code and the remedy", async (t) => {
  const { code, output } = await download(t, "echo E404; exit 3", 60);
  assert.equal(code, 3);
  assert.match(output, /\nE404\ncox: cannot fetch kubectl 1.23 \(some 30 MB\): ended with exit code 3; check the network\n$/);
});

test("a program ended by a signal has the exit code of that signal", async (t) => {
  const { code, output } = await download(t, "kill -KILL $$", 60);
  assert.equal(code, 137);
  assert.match(output, /: ended by SIGKILL; check the network\n$/);
});

test("ends a program without progress, and its children", async (t) => {
  const { code, output, folder } = await download(t, "(sleep 1000; touch survived) & echo connecting; sleep 1000", 0.5);
  assert.equal(code, 75);
  assert.match(output, /\nconnecting\ncox: cannot fetch .*: no progress for \d s; check the network\n$/);
  assert.equal(existsSync(join(folder, "survived")), false);
});

test("shows the last output of a slow program", async (t) => {
  const { code, output } = await download(t, "echo Unpacking a; echo 'Setting up b (1.0) ...'; sleep 1000", 2);
  assert.equal(code, 75);
  assert.match(output, /\ncox: still fetching kubectl 1\.23 \(some 30 MB\), for \d s: Setting up b \(1\.0\) \.\.\.\n/);
});

test("a program that keeps reading is not ended", async (t) => {
  const script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 2000000 /dev/zero | tail -c 1; sleep 0.2; done; echo";
  assert.equal((await download(t, script, 1.5)).code, 0);
});

test("Ctrl-C ends the program too", async (t) => {
  const { code, output } = await download(t, "sleep 1000", 60, (kill) => kill("SIGINT"));
  assert.equal(code, 130);
  assert.match(output, /stopped by SIGINT\n$/);
});
