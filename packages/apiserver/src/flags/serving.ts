import { rule } from "@coxswain/apimachinery/flags/rules";
import {
  bool,
  duration,
  float,
  int,
  ip,
  mapStringBool,
  mapStringString,
  string,
  stringSlice,
} from "@coxswain/apimachinery/flags/types";

/** Requests, served APIs and admission. */

const notNegativeValue = rule<number>(
  "0 or more",
  (value) => value >= 0,
  (_, name) => `${name} can not be negative value`,
);

export const genericFlags = {
  "advertise-address": ip({
    help: "The IP address on which to advertise the API server to members of the cluster. If blank, --bind-address is used; if that is unspecified, the address of the default interface.",
  }),
  "cors-allowed-origins": stringSlice({
    help: "Origins that CORS allows, as regular expressions. Empty: CORS is off.",
  }),
  "enable-priority-and-fairness": bool({
    default: true,
    help: "If true and the APIPriorityAndFairness gate is on, replaces the max-in-flight limit with queues that are served fairly by priority.",
  }),
  "external-hostname": string({ help: "The hostname to use in URLs that the server makes for itself." }),
  "feature-gates": mapStringBool({ help: "A set of key=value pairs that turn features on or off." }),
  "goaway-chance": float({
    must: rule(
      "0 to 0.02",
      (chance) => chance >= 0 && chance <= 0.02,
      (_, name) => `${name} can not be less than 0 or greater than 0.02`,
    ),
    help: "Chance that a request of an HTTP/2 client is answered with GOAWAY, so that it opens a new connection, perhaps to another server. From 0 (off) to .02.",
  }),
  "http2-max-streams-per-connection": int({
    help: "The limit that the server gives to clients for the number of streams in an HTTP/2 connection. 0 means the runtime's default.",
  }),
  "livez-grace-period": duration({
    help: "The longest time that start-up may take, as /livez sees it. Until then, unfinished start-up hooks do not make it unhealthy.",
  }),
  "max-mutating-requests-inflight": int({
    default: 200,
    must: notNegativeValue,
    help: "The largest number of mutating requests in flight at a time. Beyond it requests are rejected. 0 for no limit.",
  }),
  "max-requests-inflight": int({
    default: 400,
    must: notNegativeValue,
    help: "The largest number of non-mutating requests in flight at a time. Beyond it requests are rejected. 0 for no limit.",
  }),
  "min-request-timeout": int({
    default: 1800,
    help: "The least number of seconds a handler must keep a request open before it times it out. At present only watches honour it: each takes a random time above it, to spread the load.",
  }),
  "request-timeout": duration({
    default: "1m0s",
    must: rule(
      "more than 0",
      (ms) => ms > 0,
      (_, name) => `${name} can not be negative value`,
    ),
    help: "How long a handler may keep a request open before it times it out. Long-running requests have a separate limit, --min-request-timeout.",
  }),
  "shutdown-delay-duration": duration({
    help: "How long the server continues to serve after it received SIGTERM; /readyz fails meanwhile, so that load balancers choose other servers.",
  }),
  "shutdown-send-retry-after": bool({
    help: "If true, the server answers new requests with 429 and a Retry-After header while it ends, after it has stopped to listen.",
  }),
  "strict-transport-security-directives": stringSlice({
    help: "Directives of the HSTS header. Empty: no header.",
  }),
  "target-ram-mb": int({
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "Memory limit of the server in MB, from which cache sizes were derived.",
  }),
};

export const insecureServingFlags = {
  address: ip({
    default: "127.0.0.1",
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "The IP address of the insecure port.",
  }),
  "insecure-bind-address": ip({
    default: "127.0.0.1",
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "The IP address of the insecure port.",
  }),
  "insecure-port": int({
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "The port of unsecured, unauthenticated access.",
  }),
  port: int({ hidden: true, deprecated: "it has no effect.", wired: false, help: "The port of unsecured access." }),
};

export const featureFlags = {
  "contention-profiling": bool({ wired: false, help: "Turns lock contention profiling on, if profiling is on." }),
  "enable-swagger-ui": bool({
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "Serves a user interface for the API's description.",
  }),
  profiling: bool({ default: true, help: "Enables profiling through host:port/debug/pprof/." }),
  ui: bool({
    help: "Serves a page at host:port/ui/ that shows the cluster live, limited to what the signed-in user may read. Upstream has no such flag.",
  }),
};

export const apiEnablementFlags = {
  "runtime-config": mapStringString({
    bareKeys: true,
    help: "key=value pairs that turn built-in APIs on or off: v1=true|false for the core group, <group>/<version>=true|false for one version, api/all, api/ga, api/beta and api/alpha for all of a kind. api/legacy is deprecated.",
  }),
};

export const egressFlags = {
  "egress-selector-config-file": string({ help: "File with the configuration of egress selectors." }),
};

export const admissionFlags = {
  "admission-control": stringSlice({
    deprecated: "will be removed in a future version.",
    help: "Admission control plugins in order, as one exclusive list.",
  }),
  "admission-control-config-file": string({ help: "File with the configuration of admission plugins." }),
  "default-not-ready-toleration-seconds": int({
    default: 300,
    help: "Seconds of the toleration for notReady:NoExecute that every pod gets that does not have one.",
  }),
  "default-unreachable-toleration-seconds": int({
    default: 300,
    help: "Seconds of the toleration for unreachable:NoExecute that every pod gets that does not have one.",
  }),
  "disable-admission-plugins": stringSlice({
    help: "Admission plugins to disable although they are enabled by default. The order does not matter.",
  }),
  "enable-admission-plugins": stringSlice({
    help: "Admission plugins to enable in addition to the default ones. The order does not matter.",
  }),
};

export const traceFlags = {
  "tracing-config-file": string({ help: "File with the configuration of tracing." }),
};
