"""The Thrift door: HiveServer2's service, for the Hive and Spark drivers of BI tools, beeline and PyHive."""
