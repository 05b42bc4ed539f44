/** `node -C cox-source tools/simulate/src/main.ts --seeds 1-100`: simulates clusters with faults; see `--help`. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { planOf, plans } from "./plans/catalogue.ts";
import { simulate } from "./simulation.ts";

const usage = `Usage: node -C cox-source tools/simulate/src/main.ts [options]

  --seeds 1-100     one seed or a range; default 1-100
  --plan NAME       one of: ${plans.map(({ name }) => name).join(", ")}; default: each seed takes the next
  --trace           prints each step
  --logs N          prints the programs' logs with this verbosity
  --hashes          prints the hash of each seed's trace
  --help
`;

const options = {
  seeds: { type: "string", default: "1-100" },
  plan: { type: "string" },
  trace: { type: "boolean" },
  logs: { type: "string" },
  hashes: { type: "boolean" },
  help: { type: "boolean" },
} satisfies ParseArgsOptionsConfig;

const { values } = parseArgs({ options });
const range = /^(\d+)(?:-(\d+))?$/.exec(values.seeds);
const chosen = plans.filter(({ name }) => values.plan === undefined || name === values.plan);
if (values.help || range === null || chosen.length === 0) {
  process.stdout.write(usage);
  process.exit(values.help ? 0 : 2);
}
const first = Number(range[1]);
const last = Number(range[2] ?? range[1]);
let failures = 0;
let steps = 0;
for (let seed = first; seed <= last; seed++) {
  const plan = planOf(seed, chosen);
  const outcome = await simulate({
    seed,
    plan,
    onTrace: values.trace ? (line) => process.stdout.write(`${line}\n`) : undefined,
    logs: values.logs === undefined ? undefined : Number(values.logs),
  });
  steps += outcome.steps;
  if (values.hashes)
    process.stdout.write(`${seed} ${plan.name} ${outcome.hash} ${outcome.steps} steps, ${outcome.durationMs / 1000} s\n`);
  if (outcome.failure === undefined) continue;
  failures++;
  const repeat = `node -C cox-source tools/simulate/src/main.ts --seeds ${seed} --plan ${plan.name} --trace`;
  const shown = outcome.lastSteps
    .slice(-15)
    .map((line) => `  ${line.slice(0, 200)}\n`)
    .join("");
  process.stdout.write(`seed ${seed} of ${plan.name} failed: ${outcome.failure}\n${shown}Repeat it with: ${repeat}\n\n`);
}
const { user, system } = process.cpuUsage();
process.stdout.write(
  `${last - first + 1} seeds, ${steps} steps, ${failures} failed, ${((user + system) / 1e6).toFixed(1)} s of CPU time\n`,
);
process.exit(failures > 0 ? 1 : 0);
