"""The only place that speaks to HiGHS and SCIP: sessions that grow by rows and columns and stay warm."""
