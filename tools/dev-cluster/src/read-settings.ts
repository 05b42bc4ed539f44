import { readRecord } from "./cluster-record.ts";
import { defaultChoices, newSettings, requestedByVariables, type Settings, stateFolder, withRequested } from "./settings.ts";

/**
 * The settings chosen by the last `up`; without one, those given by variables and defaults.
 * @param name value of `--name`
 */
export function readSettings(root: string, env: NodeJS.ProcessEnv = process.env, name = "default"): Settings {
  const state = stateFolder(root, name, env);
  const choices = readRecord(state)?.choices ?? withRequested(defaultChoices(), requestedByVariables(env));
  return newSettings(root, name, state, choices, env);
}
