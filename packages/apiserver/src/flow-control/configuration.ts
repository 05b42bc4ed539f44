/**
 * Applies the FlowSchemas and PriorityLevelConfigurations of the cluster whenever they change, and maintains the Dangling
 * condition of each schema.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/apf_controller.go
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { FlowSchemaCondition } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import { flowSchemas, priorityLevelConfigurations } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { FlowSchema, PriorityLevel } from "./plan.ts";
import type { FlowControl } from "./priority-and-fairness.ts";

interface ConfigurationOptions {
  readonly informers: InformerFactory;
  readonly client: Client;
  readonly flowControl: Pick<FlowControl, "configure">;
  readonly clock: Clock;
  readonly log: Logger;
}

const fieldManager = "api-priority-and-fairness-config-consumer-v1";
/** Limits status writes, so that servers with different views do not overwrite each other endlessly. */
const mostWritesPerMinute = 6;
const retryMs = 15_000;

/** @returns a function that starts the controller, which runs until `signal` is aborted */
export function followConfiguration(options: ConfigurationOptions): (signal: AbortSignal) => void {
  const { informers, client, flowControl, clock, log } = options;
  const levels = informers.for<PriorityLevel>(priorityLevelConfigurations);
  const schemas = informers.for<FlowSchema>(flowSchemas);
  const writes = new Map<string, number[]>();
  let stopped: AbortSignal | undefined;
  let due = false;
  let running = false;

  const changed = (): void => {
    due = true;
    if (running || stopped === undefined) return;
    running = true;
    queueMicrotask(() => void run(stopped!));
  };
  for (const informer of [levels, schemas]) informer.addHandler({ added: changed, updated: changed, deleted: changed });

  async function run(signal: AbortSignal): Promise<void> {
    let hasFailed = false;
    while (due && !signal.aborted) {
      due = false;
      try {
        const now = { levels: levels.lister.list(), schemas: schemas.lister.list() };
        flowControl.configure(now);
        const names = new Set(now.levels.map(({ metadata }) => metadata.name));
        for (const schema of now.schemas) {
          await report(schema, !names.has(schema.spec.priorityLevelConfiguration.name), signal);
        }
      } catch (err) {
        if (signal.aborted) break;
        log.error("cannot update the condition Dangling of flow schemas", err);
        hasFailed = true; // a change that came meanwhile is applied now, not with the retry
      }
    }
    running = false;
    if (hasFailed && !signal.aborted) clock.after(retryMs, changed);
  }

  async function report(schema: FlowSchema, dangling: boolean, signal: AbortSignal): Promise<void> {
    const condition = danglingCondition(schema, dangling, clock.now());
    const { name = "" } = schema.metadata;
    if (condition === undefined) return;
    const recent = (writes.get(name) ?? []).filter((ms) => ms > clock.monotonic() - 60_000);
    if (recent.length >= mostWritesPerMinute) return void clock.after(retryMs, changed);
    writes.set(name, [...recent, clock.monotonic()]);
    const patch = { type: "strategic", body: { status: { conditions: [condition] } } } as const;
    await client.patch(flowSchemas, { name, subresource: "status" }, patch, { fieldManager, signal });
  }

  return (signal) => {
    void Promise.all([levels.waitForSync(signal), schemas.waitForSync(signal)]).then(
      () => {
        stopped = signal;
        changed();
      },
      () => {}, // the server stops
    );
  };
}

/** @returns undefined when the schema already has the condition */
function danglingCondition(schema: FlowSchema, dangling: boolean, nowMs: number): FlowSchemaCondition | undefined {
  const level = `the PriorityLevelConfiguration object named ${goQuote(schema.spec.priorityLevelConfiguration.name)}`;
  const wanted = dangling
    ? { status: "True", reason: "NotFound", message: `This FlowSchema references ${level} but there is no such object` }
    : { status: "False", reason: "Found", message: `This FlowSchema references ${level} and it exists` };
  const said = schema.status?.conditions?.find(({ type }) => type === "Dangling");
  if (said?.status === wanted.status && said.reason === wanted.reason && said.message === wanted.message) return undefined;
  // Cast: `wanted` has the other fields.
  return { type: "Dangling", ...wanted, lastTransitionTime: formatTime(nowMs) } as FlowSchemaCondition;
}
