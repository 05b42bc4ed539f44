import type { LeaderElectionConfig } from "@coxswain/apimachinery/controller/leader-election";
import type { SettingValues } from "@coxswain/apimachinery/flags/settings";
import type { concurrencySettings } from "../flags/concurrency.ts";
import type { endpointSettings, endpointSliceSettings, mirroringSettings } from "../flags/endpoints.ts";
import type { genericSettings, nodeMonitorSettings, serverSettings } from "../flags/generic.ts";
import type { nodeLifecycleSettings } from "../flags/nodes.ts";
import type {
  autoscalingRuleSettings,
  autoscalingSettings,
  garbageCollectorSettings,
  namespaceSettings,
  podGcSettings,
  quotaSettings,
} from "../flags/workloads.ts";
import type { LeaderMigration } from "../leader-migration.ts";
import type { CertificateSigningConfig } from "./certificate-signing.ts";
import type { CloudConfig } from "./cloud.ts";
import type { VolumesConfig } from "./volumes.ts";

/** Fields that are the values of single flags, named by the rows in `flags/`. Times are in ms. */
type FlagConfig = SettingValues<
  typeof serverSettings &
    typeof genericSettings &
    typeof endpointSettings &
    typeof endpointSliceSettings &
    typeof garbageCollectorSettings &
    typeof namespaceSettings &
    typeof quotaSettings &
    typeof podGcSettings
>;

/** Validated configuration. */
export interface ControllerManagerConfig extends Readonly<FlagConfig> {
  /** Names of the controllers to run. */
  readonly controllers: ReadonlySet<string>;
  readonly leaderElection: LeaderElectionConfig;
  readonly leaderMigration: LeaderMigration | undefined;
  readonly cloud: CloudConfig;
  readonly concurrency: Concurrency;
  readonly mirroring: Readonly<SettingValues<typeof mirroringSettings>>;
  readonly horizontalPodAutoscaler: HorizontalPodAutoscalerConfig;
  readonly nodeIpam: NodeIpamConfig;
  readonly nodeLifecycle: NodeLifecycleConfig;
  /** CA bundle (PEM) for `kube-root-ca.crt` and token Secrets. */
  readonly rootCa: string | undefined;
  /** Private key (PEM) that signs service account tokens. */
  readonly serviceAccountKey: string | undefined;
  readonly certificateSigning: CertificateSigningConfig;
  readonly volumes: VolumesConfig;
}

type Concurrency = Readonly<SettingValues<typeof concurrencySettings>>;

interface HorizontalPodAutoscalerConfig extends Readonly<SettingValues<typeof autoscalingSettings>> {
  readonly rules: Readonly<SettingValues<typeof autoscalingRuleSettings>>;
}

export type NodeLifecycleConfig = Readonly<SettingValues<typeof nodeMonitorSettings & typeof nodeLifecycleSettings>>;

/** Configuration of Pod CIDR allocation. */
export interface NodeIpamConfig {
  /** At most one per address family; each node gets a subnet of each. Empty: the allocation is disabled. */
  readonly ranges: readonly NodeRange[];
  /** Service CIDRs, which are excluded from the allocation. */
  readonly serviceCidrs: readonly string[];
}

export interface NodeRange {
  readonly cidr: string;
  /** Mask size of a node's subnet. */
  readonly maskSize: number;
}
