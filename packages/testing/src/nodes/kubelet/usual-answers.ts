import type { Container, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Exec, Logs } from "./rules.ts";

/** Default logs and exec of fake containers: one log line, and a few commands that need no program. */
export const usualAnswers: { readonly logs: Logs; readonly exec: Exec } = {
  logs: ({ pod, container }) => [
    `container ${container} on the fake node ${pod.spec.nodeName}: nothing of ${containerOf(pod, container)?.image} runs`,
  ],
  async exec({ pod, container, command: [program = "", ...args], stdin, stdout }) {
    switch (program.slice(program.lastIndexOf("/") + 1)) {
      case "echo":
        return `${args.join(" ")}\n`;
      case "hostname":
        return `${pod.spec.hostname || pod.metadata.name}\n`;
      case "env":
        return (containerOf(pod, container)?.env ?? []).map(({ name, value = "" }) => `${name}=${value}\n`).join("");
      case "cat":
        for await (const chunk of args.length === 0 ? stdin : []) await stdout(chunk as Uint8Array);
        return args.length === 0 ? 0 : { stderr: `cat: ${args[0]}: fake nodes have no files\n`, exitCode: 1 };
      case "true":
        return 0;
      case "false":
        return 1;
      default:
        return { stderr: `${program}: fake nodes run no programs\n`, exitCode: 127 };
    }
  },
};

const containerOf = ({ spec }: Pod, container: string): Container | undefined =>
  [...spec.containers, ...(spec.initContainers ?? [])].find(({ name }) => name === container);
