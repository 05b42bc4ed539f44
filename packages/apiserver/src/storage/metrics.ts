/** What storage and watch caches count, behind one interface so that neither knows the registry. */
export interface StorageMetrics {
  etcdRequest(operation: string, type: string, seconds: number): void;
  objects(resource: string, count: number): void;
  databaseSize(endpoint: string, bytes: number): void;
  terminatedWatcher(resource: string): void;
  initialEvents(resource: string, count: number): void;
}
