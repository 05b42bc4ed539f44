import { Failure } from "../failure.ts";
import { type Finding, findings, type Role, withIgnored } from "./checks.ts";
import { type FactsOptions, readFacts } from "./facts.ts";

/** Prints warnings. @throws Failure with a line for each error and its remedy */
export async function preflight(
  role: Role,
  options: FactsOptions & { readonly ignored: readonly string[]; readonly print: (line: string) => void },
): Promise<void> {
  const found = withIgnored(findings(await readFacts(role, options), role), options.ignored);
  for (const finding of found) if (!finding.isError) options.print(`[preflight] warning ${shown(finding)}`);
  const errors = found.filter(({ isError }) => isError);
  if (errors.length > 0)
    throw new Failure([
      ...errors.map(shown),
      `to go on in spite of these: --ignore-preflight-errors=${[...new Set(errors.map(({ name }) => name))].join(",")}`,
    ]);
}

const shown = ({ name, message, remedy }: Finding): string => `[${name}] ${message}; ${remedy}`;
