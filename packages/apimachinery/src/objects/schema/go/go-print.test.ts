import assert from "node:assert/strict";
import { test } from "node:test";
import { goFieldName } from "./go-names.ts";
import { goLabelSelector, goQuantity, goStruct, goUnknown } from "./go-print.ts";

// Expected texts were recorded from upstream's kube-apiserver, with addresses replaced by the constant.
for (const { name, type, value, want } of [
  {
    name: "a pointer by a fixed address, a struct inlined into another by its name",
    type: "storage/v1.VolumeAttachmentSpec",
    value: { attacher: "a", source: { persistentVolumeName: "p" }, nodeName: "m" },
    want: 'storage.VolumeAttachmentSpec{Attacher:"a", Source:storage.VolumeAttachmentSource{PersistentVolumeName:(*string)(0xc000000000), InlineVolumeSpec:(*core.PersistentVolumeSpec)(nil)}, NodeName:"m"}',
  },
  {
    name: "nil lists and maps, and times by their Go text",
    type: "meta/v1.ObjectMeta",
    value: { name: "q", labels: { b: "c", a: "b" }, deletionTimestamp: "2021-03-04T05:06:07Z" },
    want: 'v1.ObjectMeta{Name:"q", GenerateName:"", Namespace:"", SelfLink:"", UID:"", ResourceVersion:"", Generation:0, CreationTimestamp:time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC), DeletionTimestamp:time.Date(2021, time.March, 4, 5, 6, 7, 0, time.Local), DeletionGracePeriodSeconds:(*int64)(nil), Labels:map[string]string{"a":"b", "b":"c"}, Annotations:map[string]string(nil), OwnerReferences:[]v1.OwnerReference(nil), Finalizers:[]string(nil), ClusterName:"", ManagedFields:[]v1.ManagedFieldsEntry(nil)}',
  },
  {
    name: "quantities and ports as the structs they are",
    type: "core/v1.ResourceRequirements",
    value: { limits: { cpu: "100m" } },
    want: 'core.ResourceRequirements{Limits:core.ResourceList{"cpu":resource.Quantity{i:resource.int64Amount{value:100, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"100m", Format:"DecimalSI"}}, Requests:core.ResourceList(nil)}',
  },
  {
    name: "a name instead of a number",
    type: "core/v1.ServicePort",
    value: { port: 80, targetPort: "http" },
    want: 'core.ServicePort{Name:"", Protocol:"", AppProtocol:(*string)(nil), Port:80, TargetPort:intstr.IntOrString{Type:1, IntVal:0, StrVal:"http"}, NodePort:0}',
  },
  { name: "a list", type: "[]core/v1.PodIP", value: [{ ip: "10.0.0.1" }], want: '[]core.PodIP{core.PodIP{IP:"10.0.0.1"}}' },
]) {
  test(`prints ${name}`, () => assert.equal(goStruct(type, value).text, want));
}

test("prints pods as the internal version has them", () => {
  const { text } = goStruct("core/v1.PodTemplateSpec", {
    spec: { hostNetwork: true, serviceAccount: "old", volumes: [{ name: "v" }], setHostnameAsFQDN: true },
  });
  assert.doesNotMatch(text, /HostNetwork|DeprecatedServiceAccount/, "they moved into the security context, or are folded");
  assert.match(text, /ServiceAccountName:"old", AutomountServiceAccountToken:\(\*bool\)\(nil\)/);
  assert.match(text, /SecurityContext:\(\*core.PodSecurityContext\)\(0xc000000000\)/);
  assert.match(text, /Subdomain:"", SetHostnameAsFQDN:\(\*bool\)\(0xc000000000\), Affinity:/);
  assert.match(text, /RBD:\(\*core.RBDVolumeSource\)\(nil\), Quobyte:.*\(nil\), FlexVolume:/);
  assert.match(
    goStruct("core/v1.PodSecurityContext", { fsGroup: 1 }).text,
    /^core.PodSecurityContext\{HostNetwork:false, HostPID:/,
  );
});

test("quotes an absent value as null", () => assert.equal(goLabelSelector(undefined).text, "null"));

test("prints kept JSON by its bytes, and a quantity with all its parts", () => {
  assert.equal(
    goUnknown({ b: 1 }).text,
    'runtime.Unknown{TypeMeta:runtime.TypeMeta{APIVersion:"", Kind:""}, Raw:[]uint8{0x7b, 0x22, 0x62, 0x22, 0x3a, 0x31, 0x7d}, ContentEncoding:"", ContentType:"application/json"}',
  );
  assert.equal(
    goQuantity("1Gi").text,
    'resource.Quantity{i:resource.int64Amount{value:1073741824, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"1Gi", Format:"BinarySI"}',
  );
});

for (const [name, want] of Object.entries({
  apiVersion: "APIVersion",
  hostIP: "HostIP",
  ip: "IP",
  seLinuxOptions: "SELinuxOptions",
  fsGroupPolicy: "FSGroupPolicy",
  serviceAccountName: "ServiceAccountName",
  caBundle: "CABundle",
  cascade: "Cascade",
  ipFamilies: "IPFamilies",
  pdName: "PDName",
  pdID: "PdID",
  storageos: "StorageOS",
  grpc: "GRPC",
})) {
  test(`Go calls ${name} ${want}`, () => assert.equal(goFieldName("Any", name), want));
}
test("a few names depend on the struct", () => {
  assert.equal(goFieldName("RBDVolumeSource", "image"), "RBDImage");
  assert.equal(goFieldName("Container", "image"), "Image");
});

test("a schema of a custom resource has its own names, and stands where its internal type has them", () => {
  const { text } = goStruct("apiextensions/v1.JSONSchemaProps", {
    $ref: "r",
    type: "string",
    nullable: true,
    enum: ["a", 1],
    maximum: 2,
    "x-kubernetes-list-map-keys": ["k"],
  });
  assert.match(
    text,
    /^apiextensions\.JSONSchemaProps\{ID:"", Schema:"", Ref:\(\*string\)\(0xc000000000\), Description:"", Type:"string", Nullable:true, Format:"", Title:"", Default:\(\*apiextensions\.JSON\)\(nil\), Maximum:\(\*float64\)\(0xc000000000\), /,
  );
  assert.match(text, / Enum:\[\]apiextensions\.JSON\{"a", 1\}, /);
  assert.match(
    text,
    / XPreserveUnknownFields:\(\*bool\)\(nil\), XEmbeddedResource:false, XIntOrString:false, XListMapKeys:\[\]string\{"k"\}, XListType:\(\*string\)\(nil\), XMapType:\(\*string\)\(nil\), XValidations:apiextensions\.ValidationRules\(nil\)\}$/,
  );
});
