/** `./cox doctor` and `coxswain doctor`: inspect a cluster and print findings by severity, each with its remedy. */

import { newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { checks, type DoctorFinding, findingsOf } from "./checks.ts";
import { type DoctorTarget, gatherFacts } from "./facts.ts";

export type DoctorFormat = "text" | "json";

interface DoctorPlaces extends Pick<DoctorTarget, "folders" | "data"> {
  readonly kubeconfig: string;
}

/** @returns the exit code: 0 without findings, 1 with some, 2 when the API server did not answer */
export async function doctor({ kubeconfig, ...places }: DoctorPlaces, format: DoctorFormat): Promise<number> {
  const { client, noClient } = await clientOf(kubeconfig);
  try {
    const facts = await gatherFacts({ client, ...places, ...(noClient !== undefined && { noClient }) });
    const findings = findingsOf(facts);
    process.stdout.write(
      format === "json" ? `${JSON.stringify({ findings, checks: Object.keys(checks) }, undefined, 2)}\n` : findingsText(findings),
    );
    if (facts.unreachable !== undefined) return 2;
    return findings.length === 0 ? 0 : 1;
  } finally {
    client?.close();
  }
}

async function clientOf(kubeconfig: string) {
  try {
    return {
      client: newClient({ ...(await loadKubeconfig(kubeconfig)), qps: -1, userAgent: "coxswain-doctor" }),
      noClient: undefined,
    };
  } catch (err) {
    return { client: undefined, noClient: messageOf(err) };
  }
}

export function findingsText(findings: readonly DoctorFinding[]): string {
  if (findings.length === 0) return `Nothing is wrong: ${Object.keys(checks).length} checks, no findings.\n`;
  const blocks = findings.map(
    ({ severity, check, summary, remedy }) => `${severity.toUpperCase().padEnd(8)}  ${check}: ${summary}\n          ${remedy}\n`,
  );
  const counts = [...Map.groupBy(findings, ({ severity }) => severity)].map(([severity, found]) => `${found.length} ${severity}`);
  return `${blocks.join("")}${findings.length === 1 ? "1 finding" : `${findings.length} findings`}: ${counts.join(", ")}\n`;
}
