/** The plugin of the archive, with the kubectl of the tests, as an administrator of the shared cluster. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { findKubectl } from "@coxswain/dev-cluster/kubectl";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { settings } from "../framework/kubectl.ts";
import { lookedAt } from "../framework/wait-for.ts";

const program = join(import.meta.dirname, "..", "..", "tools", "deploy", "bin", "kubectl-why");

export interface Answer {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningWhy {
  readonly process: ChildProcess;
  /** What was printed so far. */
  text(): string;
  readonly ended: Promise<Answer>;
}

export async function startWhy(args: readonly string[], namespace: string): Promise<RunningWhy> {
  const env = { ...process.env, KUBECTL: await findKubectl(settings) };
  const child = spawn(program, [...args, "-n", namespace, "--kubeconfig", kubeconfigFile(settings, "admin")], { env });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = once(child, "close").then(([code]: (number | null)[]): Answer => ({ code: code ?? null, stdout, stderr }));
  return { process: child, text: () => stdout, ended };
}

export async function why(args: readonly string[], namespace: string): Promise<Answer> {
  const answer = await (await startWhy(args, namespace)).ended;
  lookedAt(`kubectl why ${args.join(" ")}\n${answer.stdout}${answer.stderr}`);
  return answer;
}

export const firstLine = ({ stdout }: Answer): string => stdout.split("\n")[0] ?? "";
