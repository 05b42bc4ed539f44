/**
 * `node -C cox-source tools/simulate/src/product-faults/main.ts [--fault 3] [--seeds 1-40]`: injects faults into the product as it is loaded and
 * reports after how many seeds the simulation detects each. Each fault runs in a separate process.
 */
import { spawnSync } from "node:child_process";
import { registerHooks } from "node:module";
import { parseArgs } from "node:util";
import { type ProductFault, productFaults } from "./catalogue.ts";

const { values } = parseArgs({ options: { fault: { type: "string" }, seeds: { type: "string", default: "1-40" } } });
const [first = 1, last = first] = values.seeds.split("-").map(Number);
const fault = productFaults[Number(values.fault) - 1];
if (fault !== undefined) {
  process.stdout.write(`${values.fault}. ${fault.name}: ${await lookFor(fault)}\n`);
} else {
  for (const [index] of productFaults.entries()) {
    const args = [...process.execArgv, import.meta.filename, "--fault", String(index + 1), "--seeds", values.seeds];
    spawnSync(process.execPath, args, { stdio: "inherit" });
  }
}

async function lookFor({ file, find, replace, plans: names }: ProductFault): Promise<string> {
  let isLoaded = false;
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (!url.endsWith(`/packages/${file}`)) return loaded;
      const source = String(loaded.source);
      if (source.split(find).length !== 2) throw new Error(`the place of the fault is not found once in ${file}`);
      isLoaded = true;
      return { ...loaded, source: source.replace(find, () => replace) };
    },
  });
  // Imported after the loader hook is registered, because the hook only affects modules loaded later.
  const { planOf, plans } = await import("../plans/catalogue.ts");
  const { simulate } = await import("../simulation.ts");
  const chosen = plans.filter(({ name }) => names.includes(name));
  if (chosen.length !== names.length) throw new Error(`there is no plan named as one of ${names.join()}`);
  for (let seed = first; seed <= last; seed++) {
    const plan = planOf(seed, chosen);
    const { failure } = await simulate({ seed, plan });
    if (!isLoaded) throw new Error(`${file} is not part of the simulation`);
    if (failure !== undefined) return `noticed after ${seed - first + 1} seeds (${plan.name} ${seed}): ${failure.split("\n")[0]}`;
  }
  return `not noticed in ${last - first + 1} seeds`;
}
