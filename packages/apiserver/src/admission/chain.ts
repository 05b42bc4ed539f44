/**
 * Runs the admission plugins in order: first all mutating plugins, then, after the strategy's validation, all validating
 * plugins. The first rejection ends the chain. When a plugin requests another round, the mutating plugins run once more, because
 * those before it have not seen the changes of its webhooks.
 * Source: k8s.io/apiserver pkg/admission/{chain.go,reinvocation.go,metrics/metrics.go}
 */
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import type { AdmissionDecisions } from "./decisions.ts";
import type { AdmissionAttributes, AdmissionChain, AdmissionPlugin } from "./plugin.ts";

type Type = "admit" | "validate";
type Operation = AdmissionAttributes["operation"];
type Histogram = ReturnType<MetricsRegistry["histogram"]>;
type Duration = ReturnType<Histogram["labels"]>;

const operations: readonly Operation[] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/**
 * One plugin for one operation. Its metric child is cached because every write observes it, and created when the plugin first
 * passes.
 */
interface Step {
  readonly plugin: AdmissionPlugin;
  readonly resources: ReadonlySet<string> | undefined;
  passed: Duration | undefined;
}

/** @param decisions receives refusals, for diagnostics */
export function newAdmissionChain(
  plugins: readonly AdmissionPlugin[],
  metrics: MetricsRegistry,
  decisions?: AdmissionDecisions,
): AdmissionChain {
  const ofPlugin = metrics.histogram(definitions.apiserver_admission_controller_admission_duration_seconds);
  const ofStep = metrics.histogram(definitions.apiserver_admission_step_admission_duration_seconds);
  const admitting = stepsByOperation(plugins, "admit");
  const validating = stepsByOperation(plugins, "validate");

  async function runStep(steps: ReturnType<typeof stepsByOperation>, type: Type, attributes: AdmissionAttributes): Promise<void> {
    const { operation } = attributes;
    const startedAt = performance.now();
    let rejected = "true";
    try {
      await runPlugins(steps.get(operation) ?? [], type, attributes, ofPlugin, decisions);
      if (attributes.wantsAnotherRound === true && type === "admit") {
        attributes.round = 1;
        await runPlugins(steps.get(operation) ?? [], type, attributes, ofPlugin, decisions);
      }
      rejected = "false";
      if (type === "validate") decisions?.admitted(attributes);
    } finally {
      ofStep.labels(type, operation, rejected).observe((performance.now() - startedAt) / 1000);
    }
  }

  return {
    mutate: (attributes) => runStep(admitting, "admit", attributes),
    validate: (attributes) => runStep(validating, "validate", attributes),
  };
}

function stepsByOperation(plugins: readonly AdmissionPlugin[], type: Type): ReadonlyMap<string, readonly Step[]> {
  const ofType = plugins.filter((plugin) => plugin[type] !== undefined);
  const stepOf = (plugin: AdmissionPlugin): Step => ({
    plugin,
    resources: plugin.resources && new Set(plugin.resources),
    passed: undefined,
  });
  return new Map(
    operations.map((operation) => [operation, ofType.filter((plugin) => plugin.handles(operation)).map(stepOf)] as const),
  );
}

async function runPlugins(
  steps: readonly Step[],
  type: Type,
  attributes: AdmissionAttributes,
  duration: Histogram,
  decisions: AdmissionDecisions | undefined,
): Promise<void> {
  const { operation, resource } = attributes;
  const name = resource.group === "" ? resource.resource : `${resource.resource}.${resource.group}`;
  for (const step of steps) {
    const { plugin, resources } = step;
    const startedAt = performance.now();
    let taken = step.passed;
    try {
      // A plugin that does not handle the resource counts as passed and is observed in the metrics like the others.
      if (resources === undefined || resources.has(name)) await plugin[type]?.(attributes);
      if (taken === undefined) {
        taken = duration.labels(plugin.name, type, operation, "false");
        step.passed = taken;
      }
    } catch (err) {
      taken = duration.labels(plugin.name, type, operation, "true");
      decisions?.refused(plugin.name, attributes, err);
      throw err;
    } finally {
      taken?.observe((performance.now() - startedAt) / 1000);
    }
  }
}
