import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { settings } from "../framework/kubectl.ts";

const exec = promisify(execFile);

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  /** Standard output, then standard error. */
  readonly output: string;
}

/** Runs `./cox` and never throws. */
export async function cox(
  args: string[],
  env: NodeJS.ProcessEnv = process.env,
  program: readonly string[] = [join(settings.root, "cox")],
): Promise<Outcome> {
  const [command = "", ...first] = program;
  try {
    const { stdout, stderr } = await exec(command, [...first, ...args], { env, maxBuffer: 64 << 20 });
    return { code: 0, stdout, output: stdout + stderr };
  } catch (err) {
    const failure = err as { code?: number; stdout?: string; stderr?: string };
    return {
      code: typeof failure.code === "number" ? failure.code : -1,
      stdout: failure.stdout ?? "",
      output: `${failure.stdout}${failure.stderr}`,
    };
  }
}

/** The environment without the settings of the tests' cluster, except its folder, so that other clusters choose their own. */
export const elsewhere: NodeJS.ProcessEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^COX_(PORT_|POD_|SERVICE_|NODE_)/.test(name)),
);
