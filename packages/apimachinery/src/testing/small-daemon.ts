/** A program with various behaviours, selected by --mode, for tests of exit codes, signals and output. */
import { once } from "node:events";
import { flags, section } from "../flags/flags.ts";
import { ConfigError, runMain } from "../flags/run-main.ts";
import { loggingFlags } from "../flags/shared-flags.ts";
import { bool, int, level, mapStringBool, string } from "../flags/types.ts";

const program = {
  name: "small-daemon",
  description: "A small daemon.",
  flags: flags(
    section("Generic", {
      mode: string({ help: "What to do." }),
      unused: int({ wired: false, help: "Nothing." }),
      old: int({ deprecated: "use --new", help: "Nothing." }),
      "really-crash-for-testing": bool({ help: "Crash." }),
      "feature-gates": mapStringBool({ help: "Gates." }),
      "logging-format": loggingFlags["logging-format"],
      "log-json-split-stream": bool({ help: "Split." }),
      v: level({ shorthand: "v", help: "Verbosity." }),
    }),
  ),
};

await runMain(program, async (values, { signal }) => {
  process.stdout.write("started\n");
  switch (values.mode) {
    case "refuse":
      throw new ConfigError("--mode must be something else");
    case "fail":
      throw new Error("no port", { cause: new Error("taken") });
    case "reject":
      void Promise.reject(new Error("forgotten"));
      await new Promise(setImmediate);
      process.stdout.write("still here\n");
      return;
    case "throw":
      setImmediate(() => {
        throw new Error("out of the blue");
      });
      return new Promise(() => {});
    case "wait":
      setInterval(() => {}, 1000);
      await once(signal, "abort");
      process.stdout.write("drained\n");
      return;
    case "leave":
      setInterval(() => {}, 1000);
      await once(signal, "abort");
      return signal.throwIfAborted();
    case "hang":
      setInterval(() => {}, 1000);
      return new Promise(() => {});
    default:
  }
});
