print("urlload")
