/** A group of test files with a long form, which runs only with `--long`. */
interface LongForm {
  readonly name: string;
  /** Test files; all others have no long form of this name. */
  readonly files: readonly string[];
  /** Time budget for all of its files. A file that exceeds what is left of it is stopped and fails. */
  readonly minutes: number;
  /** True when the tests run until a given time; otherwise the amount of work is fixed. */
  readonly isTimed?: boolean;
  /** Of a timed form: minutes for finishing, after which it starts no work; default a tenth of the budget. */
  readonly finishMinutes?: number;
}

/** Has no test files: tools/mutate runs after all tests, two faults at a time. */
export const mutation: LongForm = { name: "mutation", files: [], minutes: 40, isTimed: true };

/** Every file that reads COX_TEST_LONG must be in one of them (tested). */
export const longForms: readonly LongForm[] = [
  // Each half has a lane of its own, two thirds of a core at least: more than 100,000 seeds in total, at 0.09 s of CPU time each.
  {
    name: "simulation",
    files: ["tools/simulate/src/seeds/first-half.test.ts"],
    minutes: 125,
    isTimed: true,
    finishMinutes: 2,
  },
  {
    name: "simulation, second half",
    files: ["tools/simulate/src/seeds/second-half.test.ts"],
    minutes: 125,
    isTimed: true,
    finishMinutes: 2,
  },
  { name: "fuzz with coverage", files: ["tools/fuzz/src/targets.test.ts"], minutes: 60, isTimed: true },
  {
    name: "fuzz of codecs and HTTP/2",
    files: [
      "packages/apimachinery/src/objects/codec/fuzz.test.ts",
      "packages/apimachinery/src/transport/http2/wire/hpack.property.test.ts",
      "packages/apimachinery/src/serving/http2-fuzz.test.ts",
    ],
    minutes: 15,
  },
  { name: "published packages", files: ["tools/publish/src/testing-package.test.ts"], minutes: 12 },
  {
    name: "oracles and properties",
    files: [
      "packages/apiserver/src/authentication/token-timing.test.ts",
      "packages/apiserver/src/authorization/rbac-oracle.test.ts",
      "packages/apiserver/src/cel/program.property.test.ts",
      "packages/apiserver/src/registry/any-object.test.ts",
      "packages/apiserver/src/registry/repeated-fields-turns.test.ts",
      "packages/apiserver/src/watch/opening.test.ts",
      "packages/controller-manager/src/controllers/job/faults.test.ts",
      "packages/scheduler/src/needless-calls.test.ts",
      "packages/scheduler/src/scheduling-oracle.test.ts",
    ],
    minutes: 30,
  },
  {
    name: "overload and slow clients",
    files: [
      "packages/apimachinery/src/serving/slow-clients.test.ts",
      "packages/apiserver/src/server/hostile-upgrades.test.ts",
      "packages/apiserver/src/server/metric-series.test.ts",
      "packages/apiserver/src/server/overload.test.ts",
      "packages/apiserver/src/server/turns-answers.test.ts",
      "packages/apiserver/src/server/turns-largest.test.ts",
      "packages/apiserver/src/server/turns-values.test.ts",
    ],
    minutes: 20,
  },
  { name: "largest requests", files: ["packages/apiserver/src/server/largest-requests.test.ts"], minutes: 30 },
  { name: "hostile clients", files: ["e2e/hostile/hostile.test.ts"], minutes: 60 },
  { name: "churn", files: ["e2e/robustness/store/churn.test.ts"], minutes: 25 },
  {
    name: "faults of the store",
    files: ["e2e/robustness/store/clients.test.ts", "e2e/robustness/store/faults.test.ts"],
    minutes: 25,
  },
  {
    name: "rolling restart",
    files: ["e2e/robustness/store/rolling-restart.test.ts", "e2e/start/rolling-restart.test.ts"],
    minutes: 20,
  },
  {
    name: "starts",
    files: [
      "e2e/start/any-order.test.ts",
      "e2e/start/cold-starts.test.ts",
      "e2e/start/interrupted-up.test.ts",
      "e2e/start/lost-lease.test.ts",
    ],
    minutes: 36,
  },
  // Identical in every run.
  { name: "kills", files: ["e2e/robustness/kill.test.ts", "e2e/robustness/recovery/recovery.test.ts"], minutes: 10 },
  { name: "many definitions", files: ["e2e/controllers/many-definitions.test.ts"], minutes: 15 },
  { name: "walk through the API", files: ["e2e/api/walk.test.ts"], minutes: 30 },
  { name: "reasons why objects are not well", files: ["e2e/why/why.test.ts", "e2e/why/plugin.test.ts"], minutes: 8 },
  { name: "kubectl of other releases", files: ["e2e/clients/kubectl-releases.test.ts"], minutes: 4 },
  { name: "page of a large cluster", files: ["e2e/ui/large.test.ts"], minutes: 2 },
  { name: "benchmarks of daemons", files: ["tools/bench/src/daemons/smoke.test.ts"], minutes: 5 },
  { name: "cost of keeping reasons", files: ["packages/scheduler/src/decisions-cost.test.ts"], minutes: 4 },
  {
    name: "first week, and churn of Services",
    files: [
      "e2e/cluster-services/first-week.test.ts",
      "e2e/cluster-services/killed.test.ts",
      "e2e/cluster-services/replaced.test.ts",
      "packages/cluster-services/src/load-balancers/announcer.test.ts",
      "packages/cluster-services/src/services/churn.test.ts",
    ],
    minutes: 28,
  },
  {
    name: "cluster services on machines, and under faults",
    files: [
      "e2e/cluster-services/faults.test.ts",
      "e2e/cluster-services/machines.test.ts",
      "e2e/cluster-services/restored.test.ts",
    ],
    minutes: 19,
  },
  { name: "growth of cluster services", files: ["e2e/cluster-services/leak.test.ts"], minutes: 20, isTimed: true },
  { name: "metrics after a kill", files: ["e2e/cluster-services/process.test.ts"], minutes: 8 },
  { name: "several machines", files: ["e2e/deploy/machines.test.ts", "e2e/deploy/upgrade.test.ts"], minutes: 10 },
  { name: "high availability", files: ["e2e/deploy/ha.test.ts"], minutes: 55 },
  { name: "balancers in front of API servers", files: ["e2e/deploy/balancers.test.ts"], minutes: 20 },
  { name: "guide to five machines", files: ["e2e/deploy/guide.test.ts"], minutes: 35 },
  { name: "what kubeadm leaves", files: ["e2e/deploy/kubeadm.test.ts"], minutes: 6 },
  { name: "upstream's daemons and ours in turn", files: ["e2e/deploy/upstream.test.ts"], minutes: 10 },
  { name: "restored machines", files: ["e2e/deploy/restore.test.ts"], minutes: 15 },
  { name: "compose", files: ["e2e/deploy/compose.test.ts"], minutes: 9 },
  { name: "static pods", files: ["e2e/deploy/init-static-pods.test.ts", "e2e/deploy/static-pods.test.ts"], minutes: 8 },
  { name: "kubelet configuration", files: ["e2e/node/dynamic-config.test.ts"], minutes: 5 },
];

/** Duration of the complete run on two cores, for which the budgets are chosen. */
export const nightHours = 8;

export interface PlannedForm extends LongForm {
  /** False: its files run as without `--long`. */
  readonly isLong: boolean;
}

/**
 * Selects what runs in a given number of hours. Timed forms get their share of the time. Of the others, as many as fit
 * into their common share run in full, shortest first.
 */
export function planOf(hours: number, forms: readonly LongForm[] = [...longForms, mutation]): PlannedForm[] {
  const scale = hours / nightHours;
  const fixed = forms.filter(({ isTimed }) => !isTimed).toSorted((a, b) => a.minutes - b.minutes);
  let left = scale * fixed.reduce((sum, { minutes }) => sum + minutes, 0);
  const chosen = new Set<LongForm>();
  for (const form of fixed) {
    left -= form.minutes;
    if (left > -1e-6) chosen.add(form);
  }
  return forms.map((form) =>
    form.isTimed ? { ...form, ...shareOf(form, scale), isLong: true } : { ...form, isLong: chosen.has(form) },
  );
}

function shareOf(
  { minutes, finishMinutes = minutes / 10 }: LongForm,
  scale: number,
): Pick<LongForm, "minutes" | "finishMinutes"> {
  return { minutes: minutes * scale, finishMinutes: finishMinutes * scale };
}

/** Minimum time for finishing, when a tenth of a short budget is too little. */
const graceMs = 120_000;

/** Environment and time limit of a test file. @param done files that have run @returns undefined for a file without a long form in this run */
export function longRunOf(
  file: string,
  plan: readonly PlannedForm[],
  done: readonly { readonly file: string; readonly durationMs: number }[],
): { readonly env: Readonly<Record<string, string>>; readonly fileMs: number } | undefined {
  const form = plan.find(({ files }) => files.includes(file));
  if (form === undefined || !form.isLong) return undefined;
  const env: Record<string, string> = { COX_TEST_LONG: "1" };
  if (form.isTimed) env["COX_TEST_MINUTES"] = String(form.minutes - (form.finishMinutes ?? 0));
  const limitMs = form.minutes * 60_000 + (form.isTimed ? graceMs : 0);
  const spentMs = done.filter((run) => form.files.includes(run.file)).reduce((sum, { durationMs }) => sum + durationMs, 0);
  return { env, fileMs: limitMs - spentMs };
}
