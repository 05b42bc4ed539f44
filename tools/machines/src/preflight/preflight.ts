import { Failure } from "../failure.ts";
import { etcdDataFindings, type Finding, findings, type Role, withIgnored } from "./checks.ts";
import { type FactsOptions, hasEtcdData, readFacts } from "./facts.ts";

interface ReportOptions {
  readonly ignored: readonly string[];
  readonly print: (line: string) => void;
}

/** Prints warnings. @throws Failure with a line for each error and its remedy */
export async function preflight(role: Role, options: FactsOptions & ReportOptions): Promise<void> {
  report(findings(await readFacts(role, options), role), options);
}

/** The check of etcd's data folder, whose path a joining machine gets from the cluster. @throws Failure */
export function preflightEtcdData(etcdDataDir: string, options: ReportOptions): void {
  report(etcdDataFindings(hasEtcdData(etcdDataDir), etcdDataDir), options);
}

function report(all: readonly Finding[], { ignored, print }: ReportOptions): void {
  const found = withIgnored(all, ignored);
  for (const finding of found) if (!finding.isError) print(`[preflight] warning ${shown(finding)}`);
  const errors = found.filter(({ isError }) => isError);
  if (errors.length > 0)
    throw new Failure([
      ...errors.map(shown),
      `to go on in spite of these: --ignore-preflight-errors=${[...new Set(errors.map(({ name }) => name))].join(",")}`,
    ]);
}

const shown = ({ name, message, remedy }: Finding): string => `[${name}] ${message}; ${remedy}`;
