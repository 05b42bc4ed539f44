import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** `--max-open-files`: the limit of open files. @throws Error when the kernel does not allow that many */
export async function setMaxOpenFiles(pid: number, files: number): Promise<void> {
  // Node.js has no setrlimit; prlimit (util-linux) changes the limits of any process.
  await run("prlimit", ["--pid", String(pid), `--nofile=${files}:${files}`]);
}

/**
 * `--oom-score-adj`: inherited by child processes.
 * @throws Error when the kernel does not permit lowering the value
 */
export async function setOomScoreAdj(pid: number, score: number): Promise<void> {
  const path = `/proc/${pid}/oom_score_adj`;
  if (Number(await readFile(path, "utf8")) !== score) await writeFile(path, String(score));
}
