import type { FlagTable, Program } from "@coxswain/apimachinery/flags/flags";
import type { Settings } from "@coxswain/apimachinery/flags/settings";
import { kubeApiserver } from "@coxswain/apiserver/flags";
import { coxswainServices } from "@coxswain/cluster-services/flags";
import { kubeControllerManager, settings as managerSettings } from "@coxswain/controller-manager/flags";
import { kubelet } from "@coxswain/node-agent/flags";
import { agentSettings } from "@coxswain/node-agent/settings/table";
import { kubeScheduler } from "@coxswain/scheduler/flags";
import * as schedulerTables from "@coxswain/scheduler/settings";

export interface DocumentedProgram {
  /** Folder below packages/. */
  readonly package: string;
  readonly program: Program;
  /** Tables from which the flags and the configuration file's fields are generated. */
  readonly settings?: readonly Settings[];
}

export const programs: readonly DocumentedProgram[] = [
  { package: "apiserver", program: kubeApiserver },
  { package: "controller-manager", program: kubeControllerManager, settings: managerSettings },
  { package: "scheduler", program: kubeScheduler, settings: Object.values<Settings>(schedulerTables) },
  { package: "node-agent", program: kubelet, settings: [agentSettings] },
  { package: "cluster-services", program: coxswainServices },
];

type AnyFlag = FlagTable[string];

/** The page of one program: a table for each section, including hidden flags, because unit files may contain them. */
export function flagPage({ program, package: folder, settings }: DocumentedProgram): string {
  const withFields = (settings ?? []).some((table) => Object.values(table).some(({ field }) => field !== undefined));
  const sections = program.flags.sections.map(({ title, flags }) => `## ${title}\n\n${sectionTable(flags, withFields)}`);
  const fieldsOnly = (settings ?? [])
    .flatMap(Object.values<AnyFlag>)
    .filter(({ flag, field }) => flag === undefined && field !== undefined);
  const lines = [
    `# ${program.name}`,
    program.description,
    `Generated from \`packages/${folder}/src/flags.ts\`${withFields ? " and `settings` beside it" : ""}. *No effect yet*: the flag is accepted, and a warning at start says that it does nothing when it is set to something else than its default.`,
    ...sections,
    ...(fieldsOnly.length === 0 ? [] : [`## Fields without a flag\n\n${fieldTable(fieldsOnly)}`]),
  ];
  return `${lines.join("\n\n")}\n`;
}

function sectionTable(flags: FlagTable, withFields: boolean): string {
  const rows = Object.entries(flags)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, flag]) => {
      const field = withFields ? ` ${flag.field === undefined ? "" : `\`${flag.field}\``} |` : "";
      return `| \`--${name}\` |${field} ${flag.typeName || "bool"} | ${defaultOf(flag)} | ${cell(helpOf(flag))} |`;
    });
  const head = withFields
    ? ["| flag | field of the file | type | default | |", "|---|---|---|---|---|"]
    : ["| flag | type | default | |", "|---|---|---|---|"];
  return [...head, ...rows].join("\n");
}

function fieldTable(rows: readonly AnyFlag[]): string {
  const lines = rows
    .toSorted((a, b) => ((a.field ?? "") < (b.field ?? "") ? -1 : 1))
    .map((row) => `| \`${row.field}\` | ${row.typeName || "bool"} | ${defaultOf(row)} | ${cell(helpOf(row))} |`);
  return ["| field of the file | type | default | |", "|---|---|---|---|", ...lines].join("\n");
}

function defaultOf(flag: AnyFlag): string {
  const shown = flag.defaultText ?? flag.format(flag.default) ?? "";
  const usual = shown === "" || shown === "[]" || shown === "<nil>" ? "" : `\`${cell(shown)}\``;
  return flag.fileDefault === undefined ? usual : `${usual}, with a file \`${cell(flag.format(flag.fileDefault))}\``;
}

function helpOf(flag: AnyFlag): string {
  const notes = [
    flag.must === undefined ? "" : `*Allowed: ${flag.must.allowed}.*`,
    flag.refusedWithout === undefined ? "" : `*Refused while the feature gate ${flag.refusedWithout} is off.*`,
    flag.deprecated === undefined ? "" : `*Deprecated: ${flag.deprecated}*`,
    flag.wired === false ? "*No effect yet.*" : "",
    flag.hidden === true ? "*Not shown by --help.*" : "",
  ];
  return [flag.help, ...notes].filter((part) => part !== "").join(" ");
}

const cell = (text: string): string =>
  text.replaceAll("|", "\\|").replaceAll("\n", "<br>").replaceAll("<MetricName>", "&lt;MetricName&gt;");
