import type { Command } from "commander";
import { status } from "../status.ts";
import { existingCluster, newClusterVerb } from "./command.ts";

/** `./cox status`. */
export function statusVerb(root: string): Command {
  return newClusterVerb("status", "what runs, and whether the API is ready; exit code 0 when all of it is", {
    examples: ["./cox status", "./cox status --name b"],
    files: [".cox/run/, .cox/admin.conf"],
  }).action(async ({ name }: { name: string }) => {
    process.exitCode = await status(existingCluster(root, name, "status"));
  });
}
