import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** `--max-open-files`: how many files the process may hold open. @throws Error when the kernel does not allow that many */
export async function setMaxOpenFiles(pid: number, files: number): Promise<void> {
  // Node itself cannot set a limit; prlimit (util-linux) sets those of any process.
  await run("prlimit", ["--pid", String(pid), `--nofile=${files}:${files}`]);
}

/**
 * `--oom-score-adj`: how willingly the kernel ends the process when memory runs out; children begin with the same.
 * @throws Error where the kernel does not allow a lower one than the process has
 */
export async function setOomScoreAdj(pid: number, score: number): Promise<void> {
  const path = `/proc/${pid}/oom_score_adj`;
  if (Number(await readFile(path, "utf8")) !== score) await writeFile(path, String(score));
}
