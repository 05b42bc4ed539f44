import assert from "node:assert/strict";
import { test } from "node:test";
import { ProgramError, runProgram } from "./run-program.ts";

const node = (script: string, input?: string): Promise<string> => runProgram(process.execPath, ["-e", script], input);

test("a program gets its input, and its whole output is returned", async () => {
  assert.equal(await node("process.stdin.pipe(process.stdout)", "grün\n".repeat(50_000)), "grün\n".repeat(50_000));
  assert.equal(await node("process.stdin.pipe(process.stdout); console.error('a warning')"), "");
});

for (const [name, script, exitCode, message] of [
  ["ends with another exit code", "process.exitCode = 3", 3, /: exit code 3$/],
  ["says why", "console.error(' out of order \\n'); process.exitCode = 1", 1, /: out of order$/],
  ["is killed", "process.kill(process.pid, 'SIGKILL')", undefined, /: killed by SIGKILL$/],
] as const) {
  test(`a program that ${name} is an error with its command line`, async () => {
    await assert.rejects(node(script), (err) => {
      assert.ok(err instanceof ProgramError);
      assert.equal(err.exitCode, exitCode);
      assert.match(err.message, message);
      assert.ok(err.message.startsWith(`${process.execPath} -e ${script}: `));
      return true;
    });
  });
}

test("a program that reads less than its input is judged by its exit code", async () => {
  const much = "x".repeat(1 << 20);
  assert.equal(await node("process.stdin.destroy(); console.log('done')", much), "done\n");
});

test("a program that does not exist has no exit code", async () => {
  await assert.rejects(runProgram("/does/not/exist", []), (err) => {
    assert.ok(err instanceof ProgramError);
    assert.equal(err.exitCode, undefined);
    assert.match(err.message, /^cannot run \/does\/not\/exist: .*ENOENT/);
    return true;
  });
});

test("programs of the administrator are found, behind those of the process's own PATH", async () => {
  const path = (await node("console.log(process.env.PATH)")).trim();
  assert.ok(path.endsWith(":/usr/local/sbin:/usr/sbin:/sbin"));
  assert.ok(path.startsWith(`${process.env["PATH"]}:`));
});
