import { oneOf, rule } from "@coxswain/apimachinery/flags/rules";
import { bool, duration, int, string, stringSlice } from "@coxswain/apimachinery/flags/types";

/** Where objects are stored. */

export const etcdFlags = {
  "default-watch-cache-size": int({
    default: 100,
    help: "Default size of watch caches. 0 turns the watch cache off for resources without a separate size.",
  }),
  "delete-collection-workers": int({
    default: 1,
    help: "Number of workers of a DeleteCollection call; they speed up namespace cleanup.",
  }),
  "deserialization-cache-size": int({
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "Number of deserialized objects to keep in memory.",
  }),
  "enable-garbage-collector": bool({
    default: true,
    help: "Enables the generic garbage collector. Must agree between the API server and the controller manager.",
  }),
  "encryption-provider-config": string({ help: "File with the configuration of encryption providers for secrets in etcd." }),
  "etcd-cafile": string({ help: "Certificate authority file that secures communication with etcd." }),
  "etcd-certfile": string({ help: "Certificate file that secures communication with etcd." }),
  "etcd-compaction-interval": duration({
    default: "5m0s",
    help: "The interval of compaction requests. 0 turns compaction by the API server off.",
  }),
  "etcd-count-metric-poll-period": duration({
    default: "1m0s",
    help: "How often etcd is queried for the number of objects of each resource. 0 turns the metric off.",
  }),
  "etcd-db-metric-poll-interval": duration({
    default: "30s",
    help: "How often etcd is queried for its size. 0 turns the metric off.",
  }),
  "etcd-healthcheck-timeout": duration({ default: "2s", help: "Time limit of the check of etcd's health." }),
  "etcd-keyfile": string({ help: "Key file that secures communication with etcd." }),
  "etcd-prefix": string({ default: "/registry", help: "The prefix of all keys in etcd." }),
  "etcd-servers": stringSlice({
    must: rule(
      "at least one",
      (servers) => servers.length > 0,
      (_, name) => `${name} must be specified`,
    ),
    help: "etcd servers to connect to (scheme://ip:port), comma separated.",
  }),
  "etcd-servers-overrides": stringSlice({
    help: "etcd servers for single resources, comma separated: group/resource#servers, where servers are URLs, semicolon separated.",
  }),
  "experimental-encryption-provider-config": string({
    hidden: true,
    deprecated: "will be removed in a future version.",
    help: "The former name of --encryption-provider-config.",
  }),
  "lease-reuse-duration-seconds": int({
    default: 60,
    help: "How long in seconds each etcd lease is used again. A low value could make many leases, which slows etcd down.",
  }),
  "storage-backend": string({
    idle: "there is no other backend than etcd3, upstream neither",
    must: rule(
      "etcd3 or empty",
      (backend) => ["", "etcd3"].includes(backend),
      (_, name) => `${name} invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'`,
    ),
    help: "The storage backend for persistence. Options: 'etcd3' (default).",
  }),
  "storage-media-type": string({
    default: "application/vnd.kubernetes.protobuf",
    must: oneOf(
      ["application/json", "application/vnd.kubernetes.protobuf"],
      (value, name) =>
        `${name} ${value} is not supported by this server: application/json or application/vnd.kubernetes.protobuf`,
    ),
    help: "The media type of objects in storage. Some resources support only one, and ignore this.",
  }),
  "watch-cache": bool({ default: true, help: "Turns watch caching on in the API server." }),
  "watch-cache-sizes": stringSlice({
    help: "Watch cache sizes of single resources, comma separated: resource[.group]#size. 0 turns the cache of a resource off; other values are dropped, since the size follows from use, but events then have a cache.",
  }),
};
