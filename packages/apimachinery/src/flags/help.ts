import { gateLines } from "./feature-gates.ts";
import type { Program } from "./flags.ts";
import { bool, type Flag, text } from "./types.ts";

/** The output of --help: description, usage line and sections. Source: component-base cli/flag/sectioned.go */
export function helpText(program: Program, columns = 0): string {
  return `${program.description}\n\n${usageText(program, columns)}`;
}

/** The help text without the description. @param columns width of the terminal; 0: no line breaks */
export function usageText(program: Program, columns = 0): string {
  const global = globalFlags(program.name);
  if (program.unsectioned === true) {
    const all = Object.entries({ ...program.flags.table, ...global });
    return `Usage:\n  ${program.name} [flags]\n\nFlags:\n${sectionText(program.name, all, columns)}\n`;
  }
  const sections = [...program.flags.sections, { title: "Global", flags: global }];
  const shown = sections.map(
    ({ title, flags }) => `${title} flags:\n\n${sectionText(program.name, Object.entries(flags), columns)}`,
  );
  return `Usage:\n  ${program.name} [flags]\n\n${shown.join("\n\n")}\n`;
}

/** Flags that the parser handles itself, for every program. */
const globalFlags = (program: string): Readonly<Record<string, Flag<unknown>>> => ({
  // Cast: flags are read only, so that their values may be of any type.
  help: bool({ shorthand: "h", help: `help for ${program}` }) as Flag<unknown>,
  // Cast: flags are read only, so that their values may be of any type.
  version: text("version[=true]", { help: "Print version information and quit" }) as Flag<unknown>,
});

/** Flags in alphabetical order, with aligned descriptions. */
function sectionText(program: string, flags: readonly (readonly [string, Flag<unknown>])[], columns: number): string {
  const rows = flags
    .filter(([, flag]) => flag.hidden !== true)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, flag]) => ({ left: leftOf(name, flag), right: rightOf(program, name, flag) }));
  const width = Math.max(0, ...rows.map(({ left }) => left.length)) + 3;
  return rows.map(({ left, right }) => left.padEnd(width) + wrap(right, width, columns)).join("\n");
}

function leftOf(name: string, flag: Flag<unknown>): string {
  const shorthand = flag.shorthand === undefined ? "    " : `-${flag.shorthand}, `;
  return `  ${shorthand}--${name}${flag.typeName === "" ? "" : ` ${flag.typeName}`}`;
}

function rightOf(program: string, name: string, flag: Flag<unknown>): string {
  if (name === "feature-gates") return [`${flag.help} Options are:`, ...gateLines(program)].join("\n");
  const deprecated = flag.deprecated === undefined ? "" : ` (DEPRECATED: ${flag.deprecated})`;
  return `${flag.help}${defaultOf(flag)}${deprecated}`;
}

/** As in pflag, zero values are not shown, and strings are quoted. */
function defaultOf(flag: Flag<unknown>): string {
  const shown = flag.defaultText ?? flag.format(flag.default);
  if (["", "0", "0s", "false", "[]", "<nil>"].includes(shown)) return "";
  return flag.typeName === "string" ? ` (default ${JSON.stringify(shown)})` : ` (default ${shown})`;
}

/** Wraps text at spaces and indents it; 0 columns: no wrapping. */
function wrap(text: string, indent: number, columns: number): string {
  const blank = `\n${" ".repeat(indent)}`;
  const lines = text.split("\n");
  if (columns < indent + 24) return lines.join(blank);
  return lines
    .flatMap((line) => {
      const wrapped: string[] = [];
      let current = "";
      for (const word of line.split(" ")) {
        if (current !== "" && current.length + 1 + word.length > columns - indent) {
          wrapped.push(current);
          current = word;
        } else current = current === "" ? word : `${current} ${word}`;
      }
      return [...wrapped, current];
    })
    .join(blank);
}
