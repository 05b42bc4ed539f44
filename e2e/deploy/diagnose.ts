import type { Machine } from "./machine.ts";

interface Findings {
  readonly findings: readonly { readonly severity: string; readonly check: string; readonly summary: string }[];
}

/** What `coxswain doctor` says on a machine. The disk is the test machine's, so findings about free space are ignored. */
export async function diagnose(machine: Machine): Promise<{ code: number; findings: string[] }> {
  const output = await machine.run("sh", "-c", "coxswain doctor -o json; echo $?");
  const end = output.trimEnd().lastIndexOf("\n");
  const { findings } = JSON.parse(output.slice(0, end)) as Findings;
  const others = findings.filter(({ check }) => check !== "disks");
  const code = Number(output.slice(end));
  return {
    code: code === 1 && others.length === 0 ? 0 : code,
    findings: others.map(({ severity, check, summary }) => `${severity} ${check}: ${summary}`),
  };
}
