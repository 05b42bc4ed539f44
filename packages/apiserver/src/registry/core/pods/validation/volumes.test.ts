import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { testRefusals } from "../../../../testing/refusals.ts";
import { podValidationOptions } from "./options.ts";
import { validateVolumes } from "./volumes.ts";

const options = podValidationOptions((gate) => gate === "DownwardAPIHugePages");
const at = "spec.volumes[0]";
const long = "a".repeat(64);
const initiator = "iqn.2015-02.example.com:init";
const claimSpec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
const downward = (item: object) => ({
  downwardAPI: { items: [{ path: "f", fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" }, ...item }] },
});
const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const modeText = "must be a number between 0 and 0777 (octal), both inclusive";

testRefusals<object>(
  (volume) => atOnce(validateVolumes([{ name: "v", ...volume }], "spec.volumes", "pod", options)).errors,
  [
    { name: "no kind of volume", input: {}, want: [`${at}: Required value: must specify a volume type`] },
    { name: "no name", input: { name: "", emptyDir: {} }, want: [`${at}.name: Required value`] },
    {
      name: "a second kind",
      input: { emptyDir: {}, hostPath: { path: "/x" }, cephfs: { monitors: ["m"] }, downwardAPI: {} },
      want: [
        `${at}.hostPath: Forbidden: may not specify more than 1 volume type`,
        `${at}.cephFS: Forbidden: may not specify more than 1 volume type`,
        `${at}.downwarAPI: Forbidden: may not specify more than 1 volume type`,
      ],
    },
    {
      name: "an emptyDir of negative size",
      input: { emptyDir: { sizeLimit: "-1" } },
      want: [`${at}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity`],
    },
    { name: "a host path of nothing", input: { hostPath: { path: "" } }, want: [`${at}.hostPath.path: Required value`] },
    {
      name: "a host path of an unknown type",
      input: { hostPath: { path: "/x", type: "Pipe" } },
      want: [
        `${at}.hostPath.type: Unsupported value: "Pipe": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"`,
      ],
    },
    {
      name: "a repository without address in a climbing folder",
      input: { gitRepo: { repository: "", directory: "/a/.." } },
      want: [
        `${at}.gitRepo.repository: Required value`,
        `${at}.gitRepo.directory: Invalid value: "/a/..": must be a relative path`,
        `${at}.gitRepo.directory: Invalid value: "/a/..": must not contain '..'`,
      ],
    },
    {
      name: "a GCE disk without name",
      input: { gcePersistentDisk: { pdName: "", partition: 256 } },
      want: [
        `${at}.persistentDisk.pdName: Required value`,
        `${at}.persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive`,
      ],
    },
    {
      name: "an AWS disk without id",
      input: { awsElasticBlockStore: { volumeID: "", partition: -1 } },
      want: [
        `${at}.awsElasticBlockStore.volumeID: Required value`,
        `${at}.awsElasticBlockStore.partition: Invalid value: -1: must be between 1 and 255, inclusive`,
      ],
    },
    {
      name: "a secret without name, with bad modes and files",
      input: {
        secret: {
          defaultMode: 512,
          items: [
            { key: "", path: "" },
            { key: "k", path: "..x", mode: -1 },
          ],
        },
      },
      want: [
        `${at}.secret.secretName: Required value`,
        `${at}.secret.defaultMode: Invalid value: 512: ${modeText}`,
        `${at}.secret.items[0].key: Required value`,
        `${at}.secret.items[0].path: Required value`,
        `${at}.secret.items[1].path: Invalid value: "..x": must not start with '..'`,
        `${at}.secret.items[1].mode: Invalid value: -1: ${modeText}`,
      ],
    },
    {
      name: "a config map without name",
      input: { configMap: { defaultMode: -1, items: [{ key: "k", path: "../x" }] } },
      want: [
        `${at}.configMap.name: Required value`,
        `${at}.configMap.defaultMode: Invalid value: -1: ${modeText}`,
        `${at}.configMap.items[0].path: Invalid value: "../x": must not contain '..'`,
      ],
    },
    {
      name: "an empty NFS share",
      input: { nfs: { server: "", path: "" } },
      want: [
        `${at}.nfs.server: Required value`,
        `${at}.nfs.path: Required value`,
        `${at}.nfs.path: Invalid value: "": must be an absolute path`,
      ],
    },
    {
      name: "an empty iSCSI target",
      input: { iscsi: { targetPortal: "", iqn: "", lun: 256, chapAuthSession: true } },
      want: [
        `${at}.iscsi.targetPortal: Required value`,
        `${at}.iscsi.iqn: Required value`,
        `${at}.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive`,
        `${at}.iscsi.secretRef: Required value`,
      ],
    },
    {
      name: "iSCSI names of no known form",
      input: { iscsi: { targetPortal: "1.2.3.4", iqn: "abc", lun: 0, initiatorName: "eui.1" } },
      want: [
        `${at}.iscsi.iqn: Invalid value: "abc": must be valid format starting with iqn, eui, or naa`,
        `${at}.iscsi.initiatorname: Invalid value: "eui.1": must be valid format`,
      ],
    },
    {
      name: "an iSCSI portal too long for its initiator",
      input: { iscsi: { targetPortal: long.slice(1), iqn: initiator, lun: 0, initiatorName: initiator } },
      want: [
        `${at}.name: Invalid value: "v": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.`,
      ],
    },
    {
      name: "an iSCSI portal as long as its initiator allows",
      input: { iscsi: { targetPortal: long.slice("v:".length), iqn: initiator, lun: 0, initiatorName: initiator } },
      want: [],
    },
    {
      name: "an empty Gluster volume",
      input: { glusterfs: {} },
      want: [`${at}.glusterfs.endpoints: Required value`, `${at}.glusterfs.path: Required value`],
    },
    {
      name: "a Flocker volume of no dataset",
      input: { flocker: {} },
      want: [`${at}.flocker: Required value: one of datasetName and datasetUUID is required`],
    },
    {
      name: "a Flocker volume of two datasets",
      input: { flocker: { datasetName: "a/b", datasetUUID: "u" } },
      want: [
        `${at}.flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously`,
        `${at}.flocker.datasetName: Invalid value: "a/b": must not contain '/'`,
      ],
    },
    {
      name: "a claim without name",
      input: { persistentVolumeClaim: {} },
      want: [`${at}.persistentVolumeClaim.claimName: Required value`],
    },
    {
      name: "an empty RBD image",
      input: { rbd: {} },
      want: [`${at}.rbd.monitors: Required value`, `${at}.rbd.image: Required value`],
    },
    {
      name: "an empty Cinder volume",
      input: { cinder: { secretRef: {} } },
      want: [`${at}.cinder.volumeID: Required value`, `${at}.cinder.secretRef.name: Required value`],
    },
    { name: "a Ceph file system without monitors", input: { cephfs: {} }, want: [`${at}.cephfs.monitors: Required value`] },
    {
      name: "an empty Quobyte volume",
      input: { quobyte: {} },
      want: [
        `${at}.quobyte.registry: Required value: must be a host:port pair or multiple pairs separated by commas`,
        `${at}.quobyte.volume: Required value`,
      ],
    },
    {
      name: "a Quobyte registry without port",
      input: { quobyte: { registry: "host", volume: "v" } },
      want: [`${at}.quobyte.registry: Invalid value: "host": must be a host:port pair or multiple pairs separated by commas`],
    },
    {
      name: "a long Quobyte tenant",
      input: { quobyte: { registry: "h:1", volume: "v", tenant: `${long}a` } },
      want: [`${at}.quobyte.tenant: Required value: must be a UUID and may not exceed a length of 64 characters`],
    },
    {
      name: "a downward file of nothing",
      input: downward({ path: "", fieldRef: undefined, mode: 999 }),
      want: [
        `${at}.downwardAPI.path: Required value`,
        `${at}.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required`,
        `${at}.downwardAPI.mode: Invalid value: 999: ${modeText}`,
      ],
    },
    {
      name: "a downward file of two things",
      input: downward({ resourceFieldRef: { containerName: "c", resource: "limits.cpu" } }),
      want: [`${at}.downwardAPI: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously`],
    },
    {
      name: "a downward file of a field that volumes cannot show",
      input: downward({ fieldRef: { apiVersion: "v1", fieldPath: "status.podIP" } }),
      want: [
        `${at}.downwardAPI.fieldRef.fieldPath: Unsupported value: "status.podIP": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"`,
      ],
    },
    {
      name: "a downward file of a resource of no container",
      input: downward({ fieldRef: undefined, resourceFieldRef: { resource: "limits.cpu" } }),
      want: [`${at}.downwardAPI.resourceFieldRef.containerName: Required value`],
    },
    {
      name: "a downward file of huge pages in odd parts",
      input: downward({
        fieldRef: undefined,
        resourceFieldRef: { containerName: "c", resource: "limits.hugepages-2Mi", divisor: "2" },
      }),
      want: [
        `${at}.downwardAPI.resourceFieldRef.divisor: Invalid value: "limits.hugepages-2Mi": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the hugepages resource`,
      ],
    },
    {
      name: "a fibre channel without target",
      input: { fc: {} },
      want: [`${at}.fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both`],
    },
    {
      name: "a fibre channel with both targets and no lun",
      input: { fc: { targetWWNs: ["a"], wwids: ["b"] } },
      want: [
        `${at}.fc.targetWWNs: Invalid value: []string{"a"}: targetWWNs and wwids can not be specified simultaneously`,
        `${at}.fc.lun: Required value: lun is required if targetWWNs is specified`,
      ],
    },
    {
      name: "a fibre channel with a lun out of range",
      input: { fc: { targetWWNs: ["a"], lun: 256 } },
      want: [`${at}.fc.lun: Invalid value: 256: must be between 0 and 255, inclusive`],
    },
    {
      name: "a flex volume without driver, with options of ours",
      input: { flexVolume: { options: { "a.kubernetes.io/x": "y", k8s: "ok" } } },
      want: [
        `${at}.flexVolume.driver: Required value`,
        `${at}.flexVolume.options[a.kubernetes.io/x]: Invalid value: "a.kubernetes.io/x": kubernetes.io and k8s.io namespaces are reserved`,
      ],
    },
    {
      name: "an empty Azure file share",
      input: { azureFile: {} },
      want: [`${at}.azureFile.secretName: Required value`, `${at}.azureFile.shareName: Required value`],
    },
    {
      name: "an Azure disk of unknown kind and mode",
      input: { azureDisk: { diskName: "", diskURI: "", cachingMode: "x", kind: "y" } },
      want: [
        `${at}.azureDisk.diskName: Required value`,
        `${at}.azureDisk.diskURI: Required value`,
        `${at}.azureDisk.cachingMode: Unsupported value: "x": supported values: "None", "ReadOnly", "ReadWrite"`,
        `${at}.azureDisk.kind: Unsupported value: "y": supported values: "Dedicated", "Managed", "Shared"`,
        `${at}.azureDisk.diskURI: Unsupported value: "": supported values: "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"`,
      ],
    },
    {
      name: "a managed Azure disk at a blob's address",
      input: { azureDisk: { diskName: "d", diskURI: "https://x", kind: "Managed" } },
      want: [
        `${at}.azureDisk.diskURI: Unsupported value: "https://x": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"`,
      ],
    },
    {
      name: "a vSphere volume without path",
      input: { vsphereVolume: {} },
      want: [`${at}.vsphereVolume.volumePath: Required value`],
    },
    {
      name: "a Photon disk without id",
      input: { photonPersistentDisk: {} },
      want: [`${at}.photonPersistentDisk.pdID: Required value`],
    },
    {
      name: "a Portworx volume without id",
      input: { portworxVolume: {} },
      want: [`${at}.portworxVolume.volumeID: Required value`],
    },
    {
      name: "an empty ScaleIO volume",
      input: { scaleIO: {} },
      want: [
        `${at}.scaleIO.gateway: Required value`,
        `${at}.scaleIO.system: Required value`,
        `${at}.scaleIO.volumeName: Required value`,
      ],
    },
    {
      name: "an empty StorageOS volume",
      input: { storageos: { secretRef: {} } },
      want: [`${at}.storageos.volumeName: Required value`, `${at}.storageos.secretRef.name: Required value`],
    },
    {
      name: "an empty CSI volume",
      input: { csi: { driver: "d", nodePublishSecretRef: {} } },
      want: [`${at}.csi.nodePublishSecretRef .name: Required value`],
    },
    {
      name: "a CSI driver with a long name",
      input: { csi: { driver: long } },
      want: [`${at}.csi.driver: Too long: must have at most 63 bytes`],
    },
    {
      name: "projected sources in conflict",
      input: {
        projected: {
          defaultMode: 512,
          sources: [
            { secret: { name: "s", items: [{ key: "k", path: "p" }] }, configMap: { items: [{ key: "k", path: "p" }] } },
            { serviceAccountToken: { expirationSeconds: 599, path: "" } },
          ],
        },
      },
      want: [
        `${at}.projected.defaultMode: Invalid value: 512: ${modeText}`,
        `${at}.projected.sources[0].configMap.name: Required value`,
        `${at}.projected: Invalid value: "": conflicting duplicate paths`,
        `${at}.projected.sources[0]: Forbidden: may not specify more than 1 volume type`,
        `${at}.projected.sources[1].serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes`,
        `${at}.projected.path: Required value`,
      ],
    },
    {
      name: "a projected token that never ends",
      input: { projected: { sources: [{ serviceAccountToken: { expirationSeconds: 2 ** 32 + 1, path: "t" } }] } },
      want: [
        `${at}.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds`,
      ],
    },
    {
      name: "an ephemeral volume without template",
      input: { ephemeral: {} },
      want: [`${at}.ephemeral.volumeClaimTemplate: Required value`],
    },
    {
      name: "an ephemeral volume whose template has a name",
      input: { ephemeral: { volumeClaimTemplate: { metadata: { name: "x", uid: "1" }, spec: claimSpec } } },
      want: [
        `${at}.ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set for an ephemeral volume`,
        `${at}.ephemeral.volumeClaimTemplate.metadata.uID: Forbidden: cannot be set for an ephemeral volume`,
      ],
    },
    { name: "an ephemeral volume", input: { ephemeral: { volumeClaimTemplate: { spec: claimSpec } } }, want: [] },
    {
      name: "an ephemeral volume for one pod, without the gate",
      input: { ephemeral: { volumeClaimTemplate: { spec: { ...claimSpec, accessModes: ["ReadWriteOncePod"] } } } },
      want: [
        `${at}.ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: "ReadWriteOncePod": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"`,
      ],
    },
    {
      name: "a long iSCSI portal without initiator, of the last lun",
      input: { iscsi: { targetPortal: long, iqn: `eui.${"0".repeat(16)}`, lun: 255 } },
      want: [],
    },
    {
      name: "an iSCSI target whose discovery needs a secret",
      input: { iscsi: { targetPortal: "1.2.3.4", iqn: initiator, lun: 0, chapAuthDiscovery: true } },
      want: [`${at}.iscsi.secretRef: Required value`],
    },
    ...[
      { iqn: `eui.${"A0".repeat(8)}`, valid: true },
      { iqn: `eui.${"0".repeat(15)}`, valid: false },
      { iqn: `eui.${"0".repeat(17)}`, valid: false },
      { iqn: `naa.${"a".repeat(32)}`, valid: true },
      { iqn: `naa.${"a".repeat(31)}`, valid: false },
      { iqn: `naa.${"a".repeat(33)}`, valid: false },
      { iqn: `iqn.2015-02.a:${"b".repeat(1010)}`, valid: true },
      { iqn: `iqn.2015-02.a:${"b".repeat(1011)}`, valid: false },
      { iqn: "iqn.2015-2.a:b", valid: false },
      { iqn: "iqn.2015-02.a", valid: false },
      { iqn: "iqn.2015-02.a:b,c", valid: false },
      { iqn: "iqn.2015-02.a:b c", valid: false },
    ].map(({ iqn, valid }) => ({
      name: `the iSCSI name ${iqn.slice(0, 40)} of ${iqn.length} characters`,
      input: { iscsi: { targetPortal: "1.2.3.4", iqn, lun: 0 } },
      want: valid ? [] : [`${at}.iscsi.iqn: Invalid value: "${iqn}": must be valid format`],
    })),
    ...["[::1]:80", "a:1,b:2", ":", "a:"].map((registry) => ({
      name: `the Quobyte registry ${registry}`,
      input: { quobyte: { registry, volume: "v" } },
      want: [],
    })),
    ...["a:1,b", "a:1:2", "::1:80", "a:1,"].map((registry) => ({
      name: `the Quobyte registry ${registry}`,
      input: { quobyte: { registry, volume: "v" } },
      want: [
        `${at}.quobyte.registry: Invalid value: "${registry}": must be a host:port pair or multiple pairs separated by commas`,
      ],
    })),
    { name: "a fibre channel with world wide ids alone", input: { fc: { wwids: ["w"] } }, want: [] },
    {
      name: "a flex volume with options that only look like ours",
      input: { flexVolume: { driver: "d", options: { "akubernetes.io": "", "k8s.io.a/b": "", "a/k8s.io": "" } } },
      want: [],
    },
    ...["k8s.io/a", "kubernetes.io", "KUBERNETES.IO/a", "a.K8s.io"].map((key) => ({
      name: `a flex volume with the option ${key}`,
      input: { flexVolume: { driver: "d", options: { a: "", [key]: "" } } },
      want: [`${at}.flexVolume.options[${key}]: Invalid value: "${key}": kubernetes.io and k8s.io namespaces are reserved`],
    })),
    ...[
      { kind: "Managed", diskURI: "/subscriptions/a" },
      { kind: "Dedicated", diskURI: "https://a" },
      { kind: "Shared", diskURI: "https://a" },
      { diskURI: "a" },
    ].map((disk) => ({
      name: `a ${disk.kind ?? "plain"} Azure disk at its address`,
      input: { azureDisk: { diskName: "d", ...disk } },
      want: [],
    })),
    ...["Dedicated", "Shared"].map((kind) => ({
      name: `a ${kind} Azure disk at a managed one's address`,
      input: { azureDisk: { diskName: "d", diskURI: "/subscriptions/a", kind } },
      want: [
        `${at}.azureDisk.diskURI: Unsupported value: "/subscriptions/a": supported values: "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"`,
      ],
    })),
    {
      name: "a StorageOS volume in a namespace that is none",
      input: { storageos: { volumeName: "v", volumeNamespace: "a.b", secretRef: { name: "s" } } },
      want: [`${at}.storageos.volumeNamespace: Invalid value: "a.b": ${labelText}`],
    },
    { name: "a CSI driver in upper case", input: { csi: { driver: "A.B", nodePublishSecretRef: { name: "a.b" } } }, want: [] },
    ...[
      { gitRepo: { repository: "r", directory: "." } },
      { gcePersistentDisk: { pdName: "d" } },
      { awsElasticBlockStore: { volumeID: "v", partition: 255 } },
      { glusterfs: { endpoints: "e", path: "p" } },
      { flocker: { datasetName: "n" } },
      { flocker: { datasetUUID: "u" } },
      { persistentVolumeClaim: { claimName: "c" } },
      { rbd: { monitors: ["m"], image: "i" } },
      { cinder: { volumeID: "v", secretRef: { name: "s" } } },
      { cephfs: { monitors: ["m"] } },
      { fc: { targetWWNs: ["t"], lun: 0 } },
      { flexVolume: { driver: "d" } },
      { azureFile: { secretName: "s", shareName: "t" } },
      { vsphereVolume: { volumePath: "p" } },
      { photonPersistentDisk: { pdID: "p" } },
      { portworxVolume: { volumeID: "v" } },
      { scaleIO: { gateway: "g", system: "s", volumeName: "v" } },
      { storageos: { volumeName: "v", volumeNamespace: "n" } },
      { projected: { sources: [] } },
      { nfs: { server: "s", path: "/" } },
      { secret: { secretName: "s", items: [{ key: "k", path: "a/b", mode: 0 }] } },
      { configMap: { name: "m", items: [{ key: "k", path: "a/b..c" }] } },
    ].map((source) => ({ name: `the smallest ${Object.keys(source)[0]}: ${JSON.stringify(source)}`, input: source, want: [] })),
    {
      name: "a managed Azure disk that is at no address",
      input: { azureDisk: { diskName: "d", diskURI: "x", kind: "Managed" } },
      want: [
        `${at}.azureDisk.diskURI: Unsupported value: "x": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"`,
      ],
    },
    {
      name: "a CSI driver of a wrong name in upper case, and a secret of an empty name",
      input: { csi: { driver: "A_B", nodePublishSecretRef: { name: "" } } },
      want: [`${at}.csi.driver: Invalid value: "A_B": ${subdomainText}`, `${at}.csi.nodePublishSecretRef .name: Required value`],
    },
    {
      name: "an NFS share without path",
      input: { nfs: { server: "s" } },
      want: [`${at}.nfs.path: Required value`, `${at}.nfs.path: Invalid value: "": must be an absolute path`],
    },
    {
      name: "an ephemeral volume of a name that makes no name of a claim",
      input: { name: "V", ephemeral: { volumeClaimTemplate: { spec: claimSpec } } },
      want: [
        `${at}.name: Invalid value: "V": PVC name "pod-V": ${subdomainText}`,
        `${at}.name: Invalid value: "V": ${labelText}`,
      ],
    },
    {
      name: "an ephemeral volume beside another kind, whose claim is not looked at",
      input: { name: "V", emptyDir: {}, ephemeral: {} },
      want: [
        `${at}.ephemeral: Forbidden: may not specify more than 1 volume type`,
        `${at}.name: Invalid value: "V": ${labelText}`,
      ],
    },
    {
      name: "an NFS path that is relative",
      input: { nfs: { server: "s", path: "a/b" } },
      want: [`${at}.nfs.path: Invalid value: "a/b": must be an absolute path`],
    },
    {
      name: "a projected token beside a secret, and files of one path of two downward sources",
      input: {
        projected: {
          sources: [
            { serviceAccountToken: { expirationSeconds: 600, path: "t" }, secret: { name: "s" } },
            downward({ path: "a" }),
            downward({ path: "a" }),
          ],
        },
      },
      want: [
        `${at}.projected.sources[0]: Forbidden: may not specify more than 1 volume type`,
        `${at}.projected: Invalid value: "a": conflicting duplicate paths`,
      ],
    },
    {
      name: "downward files whose second one leads outside",
      input: {
        downwardAPI: {
          defaultMode: 0o777,
          items: [
            { path: ".a/b", fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels" }, mode: 0 },
            { path: "..", fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels" } },
          ],
        },
      },
      want: [
        `${at}.downwardAPI.path: Invalid value: "..": must not contain '..'`,
        `${at}.downwardAPI.path: Invalid value: "..": must not start with '..'`,
      ],
    },
  ],
);

testRefusals<object[]>(
  (volumes) => atOnce(validateVolumes(volumes as never, "spec.volumes", "pod", options)).errors,
  [
    {
      name: "two volumes of one name",
      input: [
        { name: "v", emptyDir: {} },
        { name: "v", emptyDir: {} },
      ],
      want: ['spec.volumes[1].name: Duplicate value: "v"'],
    },
    {
      name: "a claim that an ephemeral volume makes",
      input: [
        { name: "v", ephemeral: { volumeClaimTemplate: { spec: claimSpec } } },
        { name: "w", persistentVolumeClaim: { claimName: "pod-v" } },
      ],
      want: [
        'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "pod-v": must not reference a PVC that gets created for an ephemeral volume',
      ],
    },
    {
      name: "a claim that the second ephemeral volume makes, and one that none makes",
      input: [
        { name: "u", persistentVolumeClaim: { claimName: "pod-w" } },
        { name: "v", ephemeral: { volumeClaimTemplate: { spec: claimSpec } } },
        { name: "w", ephemeral: { volumeClaimTemplate: { spec: claimSpec } } },
        { name: "x", persistentVolumeClaim: { claimName: "pod-x" } },
      ],
      want: [
        'spec.volumes[0].persistentVolumeClaim.claimName: Invalid value: "pod-w": must not reference a PVC that gets created for an ephemeral volume',
      ],
    },
  ],
);
