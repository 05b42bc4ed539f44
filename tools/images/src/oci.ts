import { createHash } from "node:crypto";
import { type TarEntry, tar } from "./tar.ts";

export interface ImageSpec {
  /** Full references, `docker.io/library/busybox:1.35`. */
  readonly names: readonly string[];
  readonly layer: readonly TarEntry[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
}

const architectures: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/**
 * An image archive in OCI layout with one uncompressed layer, for `ctr images import`; also contains Docker's manifest.json for
 * `docker load`.
 * Source: OCI image-spec, image-layout.md; the name annotation is containerd's; moby image/spec/v1.2.md for manifest.json
 */
export function imageArchive(image: ImageSpec): Buffer {
  const blobs = new Map<string, Buffer>();
  const add = (mediaType: string, content: Buffer): { mediaType: string; digest: string; size: number } => {
    const digest = createHash("sha256").update(content).digest("hex");
    blobs.set(digest, content);
    return { mediaType, digest: `sha256:${digest}`, size: content.length };
  };
  const layer = add("application/vnd.oci.image.layer.v1.tar", tar(image.layer));
  const config = add(
    "application/vnd.oci.image.config.v1+json",
    json({
      created: "1970-01-01T00:00:00Z",
      architecture: architectures[process.arch] ?? process.arch,
      os: "linux",
      config: {
        Env: image.env ?? ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        ...(image.entrypoint && { Entrypoint: image.entrypoint }),
        ...(image.command && { Cmd: image.command }),
        ...(image.labels && { Labels: image.labels }),
      },
      rootfs: { type: "layers", diff_ids: [layer.digest] },
      history: [{ created: "1970-01-01T00:00:00Z", created_by: "coxswain tools/images" }],
    }),
  );
  const manifestType = "application/vnd.oci.image.manifest.v1+json";
  const manifest = add(manifestType, json({ schemaVersion: 2, mediaType: manifestType, config, layers: [layer] }));
  const index = json({
    schemaVersion: 2,
    manifests: image.names.map((name) => ({ ...manifest, annotations: { "io.containerd.image.name": name } })),
  });
  const blob = ({ digest }: { digest: string }): string => `blobs/${digest.replace(":", "/")}`;
  const dockerManifest = [{ Config: blob(config), RepoTags: image.names, Layers: [blob(layer)] }];
  return tar([
    { type: "file", path: "oci-layout", content: json({ imageLayoutVersion: "1.0.0" }) },
    { type: "file", path: "index.json", content: index },
    { type: "file", path: "manifest.json", content: json(dockerManifest) },
    { type: "folder", path: "blobs" },
    { type: "folder", path: "blobs/sha256" },
    ...[...blobs].map(([digest, content]): TarEntry => ({ type: "file", path: `blobs/sha256/${digest}`, content })),
  ]);
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
