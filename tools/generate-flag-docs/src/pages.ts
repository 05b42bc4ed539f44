import type { FlagTable, Program } from "@coxswain/apimachinery/flags/flags";
import { kubeApiserver } from "@coxswain/apiserver/flags";
import { coxswainServices } from "@coxswain/cluster-services/flags";
import { kubeControllerManager } from "@coxswain/controller-manager/flags";
import { kubelet } from "@coxswain/node-agent/flags";
import { kubeScheduler } from "@coxswain/scheduler/flags";

export interface DocumentedProgram {
  /** Folder below packages/. */
  readonly package: string;
  readonly program: Program;
}

export const programs: readonly DocumentedProgram[] = [
  { package: "apiserver", program: kubeApiserver },
  { package: "controller-manager", program: kubeControllerManager },
  { package: "scheduler", program: kubeScheduler },
  { package: "node-agent", program: kubelet },
  { package: "cluster-services", program: coxswainServices },
];

type AnyFlag = FlagTable[string];

/** The page of one program: a table for each section, hidden flags too, because unit files may carry them. */
export function flagPage({ program, package: folder }: DocumentedProgram): string {
  const sections = program.flags.sections.map(({ title, flags }) => `## ${title}\n\n${sectionTable(flags)}`);
  const lines = [
    `# ${program.name}`,
    program.description,
    `Generated from \`packages/${folder}/src/flags.ts\`. *No effect yet*: the flag is accepted, and a warning at start says that it does nothing when it is set to something else than its default.`,
    ...sections,
  ];
  return `${lines.join("\n\n")}\n`;
}

function sectionTable(flags: FlagTable): string {
  const rows = Object.entries(flags)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, flag]) => `| \`--${name}\` | ${flag.typeName || "bool"} | ${defaultOf(flag)} | ${cell(helpOf(flag))} |`);
  return ["| flag | type | default | |", "|---|---|---|---|", ...rows].join("\n");
}

function defaultOf(flag: AnyFlag): string {
  const shown = flag.defaultText ?? flag.format(flag.default);
  return shown === "" || shown === "[]" || shown === "<nil>" ? "" : `\`${cell(shown)}\``;
}

function helpOf(flag: AnyFlag): string {
  const notes = [
    flag.deprecated === undefined ? "" : `*Deprecated: ${flag.deprecated}*`,
    flag.wired === false ? "*No effect yet.*" : "",
    flag.hidden === true ? "*Not shown by --help.*" : "",
  ];
  return [flag.help, ...notes].filter((part) => part !== "").join(" ");
}

const cell = (text: string): string =>
  text.replaceAll("|", "\\|").replaceAll("\n", "<br>").replaceAll("<MetricName>", "&lt;MetricName&gt;");
