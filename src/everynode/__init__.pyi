from everynode.embedded_cluster import EmbeddedCluster as EmbeddedCluster

__version__: str
