/** Acronyms at the start of JSON names that Go writes in upper case. */
const acronyms = [
  "api",
  "ca",
  "cidr",
  "csi",
  "dns",
  "fc",
  "fs",
  "gmsa",
  "http",
  "ip",
  "iqn",
  "iscsi",
  "nfs",
  "os",
  "pd",
  "qos",
  "rbd",
  "se",
  "ssl",
  "tcp",
  "tls",
  "ttl",
  "tty",
  "uid",
  "url",
  "aws",
  "gce",
];

/** Irregular names; qualified by the struct where other structs have the regular form. */
const odd: Readonly<Record<string, string>> = {
  cephfs: "CephFS",
  chapAuthDiscovery: "DiscoveryCHAPAuth",
  chapAuthSession: "SessionCHAPAuth",
  diskURI: "DataDiskURI",
  externalID: "DoNotUseExternalID",
  grpc: "GRPC",
  jsonPath: "JSONPath",
  lastState: "LastTerminationState",
  metadata: "ObjectMeta",
  pdID: "PdID",
  reportingComponent: "ReportingController",
  storageos: "StorageOS",
  wwids: "WWIDs",
  "CephFSPersistentVolumeSource.monitors": "Monitors",
  "JSONSchemaProps.id": "ID",
  "JSONSchemaProps.$schema": "Schema",
  "JSONSchemaProps.$ref": "Ref",
  "GlusterfsPersistentVolumeSource.endpoints": "EndpointsName",
  "GlusterfsVolumeSource.endpoints": "EndpointsName",
  ...Object.fromEntries(
    ["RBDVolumeSource", "RBDPersistentVolumeSource"].flatMap((type) => [
      [`${type}.monitors`, "CephMonitors"],
      [`${type}.image`, "RBDImage"],
      [`${type}.pool`, "RBDPool"],
      [`${type}.user`, "RadosUser"],
    ]),
  ),
};

const beginsWithAcronym = new RegExp(`^(${acronyms.join("|")})(?=[A-Z]|s?$|s[A-Z]|Version)`);

/** `hostIP` → `HostIP`, `apiVersion` → `APIVersion`, `seLinuxOptions` → `SELinuxOptions`, `x-kubernetes-map-type` → `XMapType`. */
export function goFieldName(goStruct: string, name: string): string {
  const key = `${goStruct}.${name}`;
  if (Object.hasOwn(odd, key)) return odd[key] as string;
  if (Object.hasOwn(odd, name)) return odd[name] as string;
  if (name.startsWith("x-kubernetes-"))
    return `X${name.slice("x-kubernetes".length).replace(/-(.)/g, (_, first) => first.toUpperCase())}`;
  const [acronym] = beginsWithAcronym.exec(name) ?? [];
  if (acronym !== undefined) return acronym.toUpperCase() + name.slice(acronym.length);
  return name.charAt(0).toUpperCase() + name.slice(1);
}
