import { Command, Option } from "commander";
import { PkiError } from "./files.ts";
import { type Found, type Inventory, subjectText, takeInventory, timeOf, validityOf } from "./inventory.ts";
import { type Made, makeMissing } from "./make.ts";
import type { PkiPlan } from "./plan.ts";
import { type Renewed, renew } from "./renew.ts";

interface CertsCommandOptions<Flags> {
  /** Command to add the subcommands to; default a new one. */
  readonly command?: Command;
  /** Program name in messages, as users type it: `./cox certs`. */
  readonly program: string;
  /** Adds the flags from which the plan is derived to each subcommand, and to `certs` when no `command` is given. */
  readonly configure?: (command: Command) => void;
  readonly plan: (flags: Flags) => PkiPlan;
  /** Called after files were created or renewed, not with `--dry-run`. Returned lines are printed. */
  readonly afterwards?: (plan: PkiPlan, flags: Flags) => readonly string[];
  /** Default: standard output. */
  readonly print?: (line: string) => void;
  readonly now?: () => number;
}

/**
 * `certs`, `certs check` and `certs renew`. The actions reject with PkiError, whose message is for the user; `check` sets the
 * exit code to 1 when a certificate is not usable.
 */
export function newCertsCommand<Flags extends object>(options: CertsCommandOptions<Flags>): Command {
  const { program, configure, plan, afterwards, print = console.log, now = Date.now } = options;
  const command = options.command ?? newCommand(configure);
  command.usage("[check | renew [name...]] [options]").option("--dry-run", "say what would be written, and write nothing");
  command.action(async (flags: Flags & { dryRun?: boolean }) => {
    const own = plan(flags);
    const dryRun = flags.dryRun === true;
    const made = await makeMissing(own, { dryRun, now: now() });
    for (const line of describeMade(made, dryRun)) print(line);
    if (made.length === 0) print(`nothing is missing in ${own.folder}`);
    if (!dryRun) for (const line of afterwards?.(own, flags) ?? []) print(line);
    for (const line of warnings(own, program, now())) print(line);
  });
  const check = command
    .command("check")
    .description("Lists every certificate with its end and its authority; exit code 1 when one has expired or cannot be read.")
    .addOption(new Option("-o, --output <form>", "how it is printed").choices(["table", "json"]).default("table"))
    .allowExcessArguments(false);
  configure?.(check);
  check.action((_: unknown, self: Command) => {
    const flags = self.optsWithGlobals<Flags & { output: "table" | "json" }>();
    const inventory = takeInventory(plan(flags));
    if (flags.output === "json") print(JSON.stringify(asJson(inventory, now()), undefined, 2));
    else for (const line of asTable(inventory, plan(flags).folder, now())) print(line);
    if (!isWell(inventory, now())) process.exitCode = 1;
  });
  const renewal = command
    .command("renew")
    .argument("[name...]", "as `check` lists them; without names: all that authorities of this folder signed")
    .description("Renews certificates in place. Key, names and authority stay; daemons take up new files by themselves.")
    .option("--expiring", "only those with less than 30 days to their end, or a sixth of their life where that is less")
    .option("--dry-run", "say what would be renewed, and write nothing");
  configure?.(renewal);
  renewal.action(async (names: string[], _: unknown, self: Command) => {
    const flags = self.optsWithGlobals<Flags & { dryRun?: boolean; expiring?: boolean }>();
    const own = plan(flags);
    const dryRun = flags.dryRun === true;
    const renewed = await renew(own, { names, onlyExpiring: flags.expiring === true, dryRun, now: now() });
    for (const line of describeRenewed(renewed, dryRun)) print(line);
    if (!dryRun && renewed.paths.length > 0) for (const line of afterwards?.(own, flags) ?? []) print(line);
  });
  return command;
}

function newCommand(configure: ((command: Command) => void) | undefined): Command {
  const command = new Command("certs")
    .description(
      "Writes what is missing of a cluster's certificates and kubeconfigs, in the layout of kubeadm. Files that exist stay as they are.",
    )
    .allowExcessArguments(false);
  configure?.(command);
  return command;
}

export function describeMade(made: readonly Made[], dryRun = false): string[] {
  return made.map(({ path, why }) =>
    why === undefined ? `${dryRun ? "would make" : "made"} ${path}` : `${dryRun ? "would change" : "changed"} ${path}: ${why}`,
  );
}

export function describeRenewed({ paths, skipped }: Renewed, dryRun = false): string[] {
  return [
    ...paths.map((path) => `${dryRun ? "would renew" : "renewed"} ${path}`),
    ...skipped,
    ...(paths.length === 0 ? ["nothing to renew"] : []),
  ];
}

function warnings(plan: PkiPlan, program: string, now: number): string[] {
  return takeInventory(plan).found.flatMap((entry) => {
    const validity = validityOf(entry.certificate, now);
    if (validity === "valid") return [];
    const end = timeOf(entry.certificate.validToDate);
    const what = { expired: `expired on ${end}`, "ends soon": `ends on ${end}`, "not valid yet": "is not valid yet" }[validity];
    const remedy = entry.isAuthority || validity === "not valid yet" ? "" : `; ${program} renew ${entry.name}`;
    return [`${entry.path} ${what}${remedy}`];
  });
}

const dayMs = 86_400_000;

const isWell = ({ found, unreadable }: Inventory, now: number): boolean =>
  unreadable.length === 0 && found.every(({ certificate }) => ["valid", "ends soon"].includes(validityOf(certificate, now)));

const issuerOf = (entry: Found): string => entry.ca ?? `${entry.certificate.issuer.split("\n").join(", ")} (not of this folder)`;

/** The table printed by `check`. */
function asTable({ found, unreadable }: Inventory, folder: string, now: number): string[] {
  const rows = found.map((entry) => [
    entry.detail === undefined ? entry.name : `${entry.name} (${entry.detail})`,
    timeOf(entry.certificate.validToDate),
    remaining(entry, now),
    issuerOf(entry),
    subjectText(entry.certificate),
  ]);
  const head = ["CERTIFICATE", "EXPIRES", "REMAINING", "AUTHORITY", "SUBJECT"];
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => (row[column] ?? "").length)));
  const text = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("   ")
      .trimEnd();
  return [
    ...(found.length > 0 ? [head, ...rows].map(text) : [`there are no certificates in ${folder}`]),
    ...unreadable.map(({ path, reason }) => `${path} cannot be read: ${reason}`),
  ];
}

/** The same for programs. Times are RFC 3339; `state` is valid, ends soon, expired or not valid yet. */
function asJson({ found, unreadable }: Inventory, now: number): object {
  return {
    certificates: found.map((entry) => ({
      name: entry.name,
      path: entry.path,
      ...(entry.detail !== undefined && { detail: entry.detail }),
      notBefore: timeOf(entry.certificate.validFromDate),
      notAfter: timeOf(entry.certificate.validToDate),
      state: validityOf(entry.certificate, now),
      secondsLeft: Math.floor((entry.certificate.validToDate.getTime() - now) / 1_000),
      isAuthority: entry.isAuthority,
      authority: issuerOf(entry),
      subject: subjectText(entry.certificate),
    })),
    unreadable: unreadable.map(({ name, path, reason }) => ({ name, path, reason })),
  };
}

function remaining({ certificate }: Found, now: number): string {
  const validity = validityOf(certificate, now);
  if (validity === "expired" || validity === "not valid yet") return validity;
  const ms = certificate.validToDate.getTime() - now;
  return ms >= 2 * dayMs ? `${Math.floor(ms / dayMs)}d` : `${Math.floor(ms / 3_600_000)}h`;
}

/** Entry point of a standalone program; prints problems to standard error, one per line. @returns the exit code */
export async function runCerts(command: Command, args: readonly string[]): Promise<number> {
  try {
    await command.parseAsync([...args], { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (err) {
    if (!(err instanceof PkiError)) throw err;
    for (const line of err.message.split("\n")) process.stderr.write(`error: ${line}\n`);
    return 1;
  }
}
