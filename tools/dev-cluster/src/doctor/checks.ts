/** The doctor's checks: a table of pure functions of the collected facts. */

import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { humanDuration, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { DoctorFacts, Sample } from "./facts.ts";

/** critical: something does not work; warning: it will soon stop working, or fails at times; notice: worth a change. */
type Severity = "critical" | "warning" | "notice";
const severities: readonly Severity[] = ["critical", "warning", "notice"];

export interface DoctorFinding {
  readonly severity: Severity;
  /** The check that found it: `certificates`. */
  readonly check: string;
  readonly summary: string;
  readonly remedy: string;
}

type Found = Omit<DoctorFinding, "check">;
type Check = (facts: DoctorFacts) => Found[];

const day = 24 * 3600_000;
const mostEtcdBytes = 2 * 1024 ** 3;
const mib = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`;

const sum = (metrics: readonly Sample[], name: string, wanted: (sample: Sample) => boolean = () => true): number =>
  metrics.filter((sample) => sample.name === name && wanted(sample)).reduce((total, { value }) => total + value, 0);

const certificates: Check = ({ certificates: all, now }) =>
  all.flatMap(({ file, subject, begins, ends }): Found[] => {
    const what = `${file} (${subject})`;
    const renew = "./cox certs renew, or coxswain certs renew on the machine; then restart what reads it.";
    if (ends <= now)
      return [{ severity: "critical", summary: `${what} expired ${humanDuration(now - ends)} ago`, remedy: renew }];
    if (begins > now) {
      return [
        {
          severity: "critical",
          summary: `${what} is not valid yet; it becomes valid in ${humanDuration(begins - now)}`,
          remedy: "Set this machine's clock.",
        },
      ];
    }
    return ends - now > 30 * day
      ? []
      : [{ severity: "warning", summary: `${what} expires in ${humanDuration(ends - now)}`, remedy: renew }];
  });

const disks: Check = ({ disks: all }) =>
  all.flatMap(({ path, freeBytes, totalBytes }): Found[] => {
    const share = freeBytes / totalBytes;
    if (share > 0.1 && freeBytes > 1024 ** 3) return [];
    const summary = `the disk of ${path} has ${mib(freeBytes)} of ${mib(totalBytes)} left`;
    const remedy = "Free disk space (images, logs, old data), or enlarge the disk: etcd and the kubelet stop without.";
    return [{ severity: share < 0.03 || freeBytes < 256 * 1024 ** 2 ? "critical" : "warning", summary, remedy }];
  });

const server: Check = ({ unreachable, unready }) => {
  if (unreachable !== undefined) {
    const remedy = "See whether kube-apiserver runs, its log, and the server's address in the kubeconfig.";
    return [{ severity: "critical", summary: `the API server does not answer: ${unreachable}`, remedy }];
  }
  return unready.map((line) => ({
    severity: line.startsWith("etcd") || !/ ok/.test(line) ? "critical" : "warning",
    summary: `the API server is not ready: ${line}`,
    remedy: line.startsWith("etcd")
      ? "Look at etcd: its log, its disk, its members (etcdctl endpoint status), its alarms (etcdctl alarm list)."
      : "Look at the log of kube-apiserver.",
  }));
};

const clocks: Check = ({ clockMs = 0, nodes, leases, now }) => {
  const found: Found[] = [];
  const remedy = "Run a time service (chrony, systemd-timesyncd) on every machine: certificates, leases and tokens depend on it.";
  if (Math.abs(clockMs) > 5_000) {
    const way = clockMs > 0 ? "ahead of" : "behind";
    found.push({
      severity: "warning",
      summary: `the API server's clock is ${humanDuration(Math.abs(clockMs))} ${way} this machine's`,
      remedy,
    });
  }
  const names = new Set(nodes.map(({ metadata }) => metadata.name));
  for (const { metadata, spec } of leases) {
    if (metadata.namespace !== "kube-node-lease" || !names.has(metadata.name)) continue;
    const ahead = (parseTime(spec?.renewTime ?? "") ?? 0) - (now + clockMs);
    if (ahead > 10_000)
      found.push({ severity: "warning", summary: `the clock of node ${metadata.name} is ${humanDuration(ahead)} ahead`, remedy });
  }
  return found;
};

const etcd: Check = ({ metrics }) => {
  const sizes = metrics.filter(({ name }) => name === "etcd_db_total_size_in_bytes");
  return sizes.flatMap(({ value, labels }): Found[] =>
    value < 0.75 * mostEtcdBytes
      ? []
      : [
          {
            severity: value > 0.95 * mostEtcdBytes ? "critical" : "warning",
            summary: `etcd's database ${labels["endpoint"] ?? ""} has ${mib(value)}; by default it refuses writes above ${mib(mostEtcdBytes)}`,
            remedy:
              "Delete what is not needed (apiserver_storage_objects shows the numbers), defragment (etcdctl defrag), or raise --quota-backend-bytes.",
          },
        ],
  );
};

const nodes: Check = ({ nodes: all }) => {
  if (all.length === 0) return [];
  return all.flatMap(({ metadata, status, spec }): Found[] => {
    const why = `kubectl why node/${metadata.name}`;
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    if (ready?.status !== "True") {
      return [
        {
          severity: "critical",
          summary: `node ${metadata.name} is not ready: ${ready?.message ?? "no kubelet has reported"}`,
          remedy: why,
        },
      ];
    }
    const pressure = (status?.conditions ?? []).filter(({ type, status: state }) => type !== "Ready" && state === "True");
    return [
      ...pressure.map(
        ({ type, message }): Found => ({
          severity: "warning",
          summary: `node ${metadata.name}: ${type} (${message ?? ""})`,
          remedy: why,
        }),
      ),
      ...(spec.unschedulable
        ? [
            {
              severity: "notice" as const,
              summary: `node ${metadata.name} is cordoned`,
              remedy: `kubectl uncordon ${metadata.name}, when its maintenance is over.`,
            },
          ]
        : []),
    ];
  });
};

const leaders: Check = ({ leases, now, clockMs = 0, unreachable, unread }) => {
  if (unreachable !== undefined || unread.some((line) => line.startsWith("leases"))) return [];
  return ["kube-controller-manager", "kube-scheduler"].flatMap((name): Found[] => {
    const lease = leases.find(({ metadata }) => metadata.namespace === "kube-system" && metadata.name === name);
    const renewed = parseTime(lease?.spec?.renewTime ?? "");
    const duration = (lease?.spec?.leaseDurationSeconds ?? 15) * 1000;
    if (lease?.spec?.holderIdentity && renewed !== undefined && now + clockMs - renewed < 2 * duration) return [];
    const since = renewed === undefined ? "" : ` since ${lease?.spec?.renewTime}`;
    return [{ severity: "critical", summary: `no ${name} leads${since}`, remedy: `See whether ${name} runs, and its log.` }];
  });
};

/** An APIService that has been unavailable for less than this is no finding: its server may be starting. */
const startsWithinMs = 60_000;

const apiServices: Check = ({ apiServices: all, now, clockMs = 0 }) =>
  all.flatMap(({ metadata, status }): Found[] => {
    const available = status?.conditions?.find(({ type }) => type === "Available");
    const changed = parseTime(available?.lastTransitionTime ?? "") ?? 0;
    if (available?.status !== "False" || now + clockMs - changed < startsWithinMs) return [];
    return [
      {
        severity: "critical",
        summary: `API service ${metadata.name} is unavailable: ${available.message ?? available.reason}; namespaces cannot be deleted meanwhile`,
        remedy: `kubectl why apiservice/${metadata.name}`,
      },
    ];
  });

const webhooks: Check = ({ webhooks: all, services, metrics, unread }) => {
  const found: Found[] = [];
  const servicesKnown = !unread.some((line) => line.startsWith("services"));
  for (const { metadata, webhooks: each = [] } of all) {
    for (const {
      name,
      clientConfig,
      rules = [],
      failurePolicy,
      namespaceSelector,
      objectSelector,
      timeoutSeconds = 10,
    } of each) {
      const what = `webhook ${name} of ${metadata.name}`;
      const fails = failurePolicy !== "Ignore";
      const backing = clientConfig.service;
      const isThere = services.some(({ metadata: one }) => one.namespace === backing?.namespace && one.name === backing?.name);
      if (backing !== undefined && servicesKnown && !isThere) {
        found.push({
          severity: fails ? "critical" : "warning",
          summary: `${what}: its service ${backing.namespace}/${backing.name} does not exist${fails ? "; what it matches is refused" : ""}`,
          remedy: "Install the webhook's server again, or delete the webhook configuration.",
        });
      }
      const isOpen = (selector: object | undefined): boolean => Object.keys(selector ?? {}).length === 0;
      const everything = rules.some(
        ({ apiGroups = [], resources = [] }) => apiGroups.includes("*") && (resources.includes("*") || resources.includes("*/*")),
      );
      if (everything && fails && isOpen(namespaceSelector) && isOpen(objectSelector)) {
        found.push({
          severity: "warning",
          summary: `${what} matches every resource in every namespace and refuses all writes when it fails`,
          remedy: "Limit its rules or its namespaceSelector (at least: not kube-system), or use failurePolicy Ignore.",
        });
      }
      if (fails && timeoutSeconds > 15) {
        found.push({
          severity: "notice",
          summary: `${what} may delay each write by up to ${timeoutSeconds} s`,
          remedy: "Lower timeoutSeconds.",
        });
      }
    }
  }
  for (const { name, labels, value } of metrics) {
    const isError =
      name === "apiserver_admission_webhook_rejection_count" && /calling_webhook_error/.test(labels["error_type"] ?? "");
    const isOpenFailure = name === "apiserver_admission_webhook_fail_open_count";
    if (value === 0 || !(isError || isOpenFailure)) continue;
    found.push({
      severity: "warning",
      summary: `webhook ${labels["name"]} could not be called ${value} times since the API server started${isError ? "; these requests were refused" : ""}`,
      remedy: "Look at the webhook's server and at its latency (apiserver_admission_webhook_admission_duration_seconds).",
    });
  }
  return found;
};

const versions: Check = ({ serverVersion, nodes: all }) => {
  const minorOf = (version: string | undefined): number => Number(/^v?1\.(\d+)/.exec(version ?? "")?.[1]);
  const minor = minorOf(serverVersion);
  return all.flatMap(({ metadata, status }): Found[] => {
    const version = status?.nodeInfo?.kubeletVersion;
    const behind = minor - minorOf(version);
    if (Number.isNaN(behind) || (behind >= 0 && behind <= 2)) return [];
    const relation = behind < 0 ? "newer than" : `${behind} minor versions older than`;
    return [
      {
        severity: "warning",
        summary: `the kubelet of ${metadata.name} is ${version}, ${relation} the API server (${serverVersion})`,
        remedy: "Upgrade the API server first and kubelets at most two minor versions behind it.",
      },
    ];
  });
};

const deprecated: Check = ({ deprecated: all }) => {
  const byUsers = all.filter(({ users, isOnlyVersion }) => users.length > 0 || !isOnlyVersion);
  return byUsers.map(({ version, resource, removedIn, users }) => ({
    severity: "notice",
    summary: `${resource} of ${version}, which release ${removedIn || "to come"} does not serve, ${users.length > 0 ? `are written by ${users.slice(0, 5).join(", ")}` : "were requested"}`,
    remedy: "Use the newer version of the API in manifests and clients; the audit log names their users and addresses.",
  }));
};

const caches: Check = ({ metrics }) => {
  const limit = sum(metrics, "coxswain_apiserver_cache_limit_bytes");
  const used = sum(metrics, "coxswain_apiserver_cache_bytes");
  if (limit === 0 || used < 0.95 * limit) return [];
  return [
    {
      severity: "notice",
      summary: `the API server's caches are full: ${mib(used)} of ${mib(limit)}`,
      remedy: "Give the API server more memory, or store less; lists are decoded again more often until then.",
    },
  ];
};

const overload: Check = ({ metrics }) => {
  const refused = sum(metrics, "apiserver_flowcontrol_rejected_requests_total");
  if (refused === 0) return [];
  const by = metrics
    .filter(({ name, value }) => name === "apiserver_flowcontrol_rejected_requests_total" && value > 0)
    .map(({ labels }) => `${labels["flow_schema"]} (${labels["reason"]})`);
  return [
    {
      severity: "warning",
      summary: `${refused} requests were refused with 429 since the API server started: ${[...new Set(by)].slice(0, 5).join(", ")}`,
      remedy:
        "See who sends them (/debug/api_priority_and_fairness/dump_requests), and give their priority level more shares or them less work.",
    },
  ];
};

const quotas: Check = ({ quotas: all }) =>
  all.flatMap(({ metadata, status }): Found[] => {
    const full = Object.entries(status?.hard ?? {}).flatMap(([name, text]) => {
      const hard = Quantity.tryParse(String(text));
      const used = Quantity.tryParse(String(status?.used?.[name] ?? "0"));
      if (hard === undefined || used === undefined || hard.isZero || used.nanos * 10n < hard.nanos * 9n) return [];
      return [`${name} ${used} of ${hard}`];
    });
    if (full.length === 0) return [];
    const remedy = "Raise the quota or delete what is not needed, before creates are refused.";
    return [
      {
        severity: "notice",
        summary: `quota ${metadata.namespace}/${metadata.name} is nearly used up: ${full.join(", ")}`,
        remedy,
      },
    ];
  });

const evictions: Check = ({ failedPods }) => {
  const evicted = failedPods.filter(({ status }) => status?.reason === "Evicted");
  const [first] = evicted;
  if (first === undefined) return [];
  return [
    {
      severity: "warning",
      summary: `${evicted.length} ${evicted.length === 1 ? "pod was" : "pods were"} evicted, such as ${first.metadata.namespace}/${first.metadata.name}: ${first.status?.message ?? ""}`,
      remedy:
        "Relieve the nodes, give pods requests that cover their use, then: kubectl delete pods --field-selector=status.phase=Failed",
    },
  ];
};

const stuckNamespaces: Check = ({ namespaces, now }) =>
  namespaces.flatMap(({ metadata }): Found[] => {
    const since = parseTime(metadata.deletionTimestamp ?? "");
    if (since === undefined || now - since < 10 * 60_000) return [];
    const summary = `namespace ${metadata.name} has been in deletion for ${humanDuration(now - since)}`;
    return [{ severity: "warning", summary, remedy: `kubectl why namespace/${metadata.name}` }];
  });

const signingRequests: Check = ({ signingRequests: all, now }) => {
  const waiting = all.filter(
    ({ status, metadata }) =>
      (status?.conditions ?? []).length === 0 && now - (parseTime(metadata.creationTimestamp ?? "") ?? now) > 5 * 60_000,
  );
  if (waiting.length === 0) return [];
  const names = waiting.slice(0, 3).map(({ metadata }) => metadata.name);
  const remedy = `kubectl certificate approve ${names[0]}, if you know who made it.`;
  return [
    {
      severity: "notice",
      summary: `${waiting.length} certificate signing requests wait for approval: ${names.join(", ")}`,
      remedy,
    },
  ];
};

const rights: Check = ({ unread }) =>
  unread.map((line) => ({
    severity: "notice",
    summary: `could not be checked: ${line}`,
    remedy: "Use an administrator's kubeconfig.",
  }));

/** In the order in which findings of equal severity are shown. */
export const checks: Readonly<Record<string, Check>> = {
  server,
  etcd,
  certificates,
  disks,
  clocks,
  leaders,
  nodes,
  "api-services": apiServices,
  webhooks,
  overload,
  evictions,
  namespaces: stuckNamespaces,
  versions,
  caches,
  quotas,
  "deprecated-apis": deprecated,
  "signing-requests": signingRequests,
  rights,
};

/** Runs all checks. @returns their findings, the most severe first */
export const findingsOf = (facts: DoctorFacts): DoctorFinding[] =>
  Object.entries(checks)
    .flatMap(([check, run]) => run(facts).map((found) => ({ ...found, check })))
    .toSorted((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity));
