"""The jars by which Spark reaches S3 and Azure's storage, got once by Spark's own tool."""

from __future__ import annotations

from typing import Final

HADOOP: Final = "3.5.0"
SDK: Final = "2.35.4"

_PACKAGES: Final = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    f"org.apache.hadoop:hadoop-azure:{HADOOP}",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    *(
        f"software.amazon.awssdk:{name}:{SDK}"
        for name in ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
    ),
)
# The bundle of all services, and what Spark has.
_LEFT_OUT: Final = (
    "software.amazon.awssdk:bundle",
    "com.google.code.findbugs:jsr305",
    "com.google.guava:guava",
    "commons-codec:commons-codec",
    "commons-logging:commons-logging",
    "org.apache.hadoop.thirdparty:hadoop-shaded-guava",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
    "org.codehaus.jackson:jackson-mapper-asl",
    "org.eclipse.jetty:jetty-util-ajax",
    "org.slf4j:slf4j-api",
    "org.wildfly.openssl:wildfly-openssl",
    *(
        f"io.netty:netty-{name}"
        for name in (
            "buffer",
            "codec",
            "codec-base",
            "codec-compression",
            "codec-http",
            "codec-http2",
            "common",
            "handler",
            "resolver",
            "transport",
            "transport-classes-epoll",
            "transport-native-unix-common",
        )
    ),
)

SPARK_SETTINGS: Final = {
    "spark.jars.packages": ",".join(_PACKAGES),
    "spark.jars.excludes": ",".join(_LEFT_OUT),
}
